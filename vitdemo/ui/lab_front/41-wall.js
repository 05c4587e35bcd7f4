// The wall of the film: one small map for every layer and head at the look on show; the chosen one, or the chosen layer, is framed.
(() => {
  const { parts } = film;

  film.drawWall = (maps) => {
    const { rows, cols, layers, heads } = lab.scene, about = film.about(), tall = rows + 1, wide = cols + 1, width = heads * wide - 1,
      height = layers * tall - 1, canvas = parts.wall;
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    const ctx = canvas.getContext("2d"), image = ctx.createImageData(width, height);
    for (let l = 0; l < layers; l++) {
      const shared = film.own ? 0 : film.high(l);
      for (let h = 0; h < heads; h++) {
        const vector = film.vector(maps, l, h);
        colourInto(image.data, width, l * tall, h * wide, about, vector, film.own ? film.largest(vector) : shared);
      }
    }
    ctx.putImageData(image, 0, 0);
    canvas.setAttribute("aria-label", phrase(WORDS.all_maps_at_step, { layers, heads, step: film.frame().step, title: film.title() }));
    const column = film.head === "mean" ? 0 : film.head, span = film.head === "mean" ? heads : 1;
    parts.chosen.style.cssText = "top:" + 100 * film.layer * tall / height + "%;height:" + 100 * rows / height + "%;left:" +
      100 * column * wide / width + "%;width:" + 100 * (span * wide - 1) / width + "%";
  };

  parts.wallFrame.addEventListener("keydown", (event) => {
    const [down, along] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
    if (down === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    film.change({ layer: Math.max(0, Math.min(lab.scene.layers - 1, film.layer + down)), head: along ? film.nextHead(along) : film.head });
  });

  parts.wall.addEventListener("click", (event) => {
    const { top, left, height, width } = parts.wall.getBoundingClientRect(),
      at = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    film.change({ layer: at((event.clientY - top) / height, lab.scene.layers), head: at((event.clientX - left) / width, lab.scene.heads) });
  });
})();
