// A part of the picture that a person chooses: a frame in the shape of the model's input, dragged over all of the picture, and beside it the
// few pixels that the model gets of it. Letting go looks again.
const LONG = 340, TALL = 300, LEAST = 8;                                  // CSS pixels of the picture; of the smallest frame's shorter side, pixels of the picture
const CORNER = 22, STEP = 0.02, LARGER = 1.1, SETTLED = 250;                 // CSS pixels; shares of the picture; milliseconds after the last key

const framing = {
  open: false, photo: null, key: "", frame: null, rest: 0,                // the frame in pixels of the photo: { x, y, wide, tall }

  async begin() {
    this.open = true;
    root.toggleAttribute("data-framing", true);                          // the page does not scroll away from it
    await this.renew();
    if (this.open && about.fit !== "crop" && !$("part").hidden) this.say();                    // else that middle is what is looked at already
    else if (this.open && chosen.fit) change({ fit: null });
  },

  close() {
    this.open = false;
    root.toggleAttribute("data-framing", false);
    clearTimeout(this.rest);
    $("part").hidden = true;
  },

  // The picture that is shown now, and the part of it that is looked at: its middle, where none was chosen.
  async renew() {
    const { key } = shownNow();
    if (!key) { $("part").hidden = true; return; }                       // no picture is there until the next one comes
    if (key === this.key && this.photo) return this.show();
    const answer = await Promise.resolve(server.entire({ key })).catch(() => null);
    if (!this.open || key !== shownNow().key) return;
    if (!answer?.picture) { this.close(); fillFits(); return tell(answer?.error ?? WORDS.server_silent, { failed: true, doing: [button(WORDS.close, () => tell(""))] }); }
    const { part, width, height } = answer, [top, left, bottom, right] = part ?? [], same = this.photo?.image.src === answer.picture;
    this.key = key;
    if (same && part) return this.show();                                 // the frame may be on its way already
    const image = new Image();
    image.src = answer.picture;
    await image.decode().catch(() => {});
    if (!this.open || key !== shownNow().key) return;
    if (!same) clearTimeout(this.rest);                                   // of another picture, the middle is framed until somebody moves the frame
    if (!part) chosen.part = null;
    this.photo = { image, width, height };
    this.frame = part ? { x: left * width, y: top * height, wide: (right - left) * width, tall: (bottom - top) * height } : this.middle();
    this.show();
  },

  most() {
    return Math.min(this.photo.width, this.photo.height / about.shape);   // as wide as a frame can be
  },

  middle() {
    const { width, height } = this.photo, wide = this.most(), tall = wide * about.shape;
    return { x: (width - wide) / 2, y: (height - tall) / 2, wide, tall };
  },

  show() {
    $("part").hidden = false;
    $("verdict").textContent = document.querySelector(".vd-verdict")?.textContent ?? "";
    const { width, height } = this.photo, canvas = $("frame");
    const scale = Math.min(LONG / width, TALL / height, (root.clientWidth - 8) / width);
    this.scale = Math.max(scale, 24 / Math.min(width, height));           // a thin picture is larger than its room, and scrolls
    const dots = Math.min(2, devicePixelRatio || 1);
    Object.assign(canvas, { width: Math.round(width * this.scale * dots), height: Math.round(height * this.scale * dots) });
    canvas.style.width = canvas.width / dots + "px";
    this.dots = dots;
    this.draw();
  },

  draw() {
    const { photo: { image }, frame: { x, y, wide, tall } } = this, canvas = $("frame"), pen = canvas.getContext("2d"), k = this.scale * this.dots;
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    pen.fillStyle = "rgba(0, 0, 0, 0.6)";
    pen.beginPath();
    pen.rect(0, 0, canvas.width, canvas.height);
    pen.rect(x * k, y * k, wide * k, tall * k);
    pen.fill("evenodd");
    for (const [colour, line] of [["#000", 4], ["#fff", 2]]) {            // seen on any picture
      pen.strokeStyle = colour;
      pen.lineWidth = line * this.dots;
      pen.strokeRect(x * k + 1, y * k + 1, wide * k - 2, tall * k - 2);
    }
    for (const [down, across] of [[0, 0], [0, 1], [1, 0], [1, 1]]) {
      const side = 10 * this.dots, left = (x + across * wide) * k - across * side, top = (y + down * tall) * k - down * side;
      pen.fillStyle = "#fff";
      pen.fillRect(left, top, side, side);
      pen.strokeStyle = "#000";
      pen.lineWidth = this.dots;
      pen.strokeRect(left, top, side, side);
    }
    const cols = chosen.side ?? Math.round(about.side / about.shape), rows = chosen.side ?? about.side, small = $("small");
    Object.assign(small, { width: cols, height: rows });
    const thin = small.getContext("2d");
    thin.imageSmoothingQuality = "high";
    thin.drawImage(image, x, y, wide, tall, 0, 0, cols, rows);
    small.setAttribute("aria-label", phrase(WORDS.part_small_said, { cols, rows }));
    root.querySelector(".vm-small-text").textContent = phrase(WORDS.part_small, { cols, rows });
    $("reach").value = Math.round(100 * wide / this.most());
  },

  // The frame as wide as asked, kept within the picture, about the point (share across, share down) of it.
  resize(wanted, across = 0.5, down = 0.5, most = this.most()) {
    const least = Math.min(most, LEAST / Math.min(1, about.shape));
    const { x, y, wide, tall } = this.frame, now = Math.min(most, Math.max(least, wanted));
    this.place({ x: x + across * (wide - now), y: y + down * (tall - now * about.shape), wide: now, tall: now * about.shape });
  },

  place(frame) {
    const within = (value, most) => Math.max(0, Math.min(most, value));
    this.frame = { ...frame, x: within(frame.x, this.photo.width - frame.wide), y: within(frame.y, this.photo.height - frame.tall) };
    this.draw();
  },

  say() {
    clearTimeout(this.rest);
    const { photo: { width, height }, frame: { x, y, wide, tall } } = this, share = (value) => Math.max(0, Math.min(1, Number(value.toFixed(5))));
    change({ fit: null, part: [share(y / height), share(x / width), share((y + tall) / height), share((x + wide) / width)] });
  },

  sayLater() {
    clearTimeout(this.rest);
    this.rest = setTimeout(() => { if (this.open) this.say(); }, SETTLED);
  },
};

function bindFrame() {
  const canvas = $("frame");
  let hold = null;                                                        // what is dragged: a corner by the one opposite, or the whole frame
  const at = (event) => { const box = canvas.getBoundingClientRect(); return { x: (event.clientX - box.left) / framing.scale, y: (event.clientY - box.top) / framing.scale }; };
  const cornerAt = ({ x, y }) => {
    const { frame } = framing, reach = Math.min(CORNER / framing.scale, frame.wide / 3);
    return [[0, 0], [0, 1], [1, 0], [1, 1]].find(([down, across]) => Math.hypot(x - frame.x - across * frame.wide, y - frame.y - down * frame.tall) <= reach);
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const point = at(event), corner = cornerAt(point), { frame } = framing;
    canvas.setPointerCapture(event.pointerId);
    const inside = point.x >= frame.x && point.x <= frame.x + frame.wide && point.y >= frame.y && point.y <= frame.y + frame.tall;
    if (!corner && !inside) framing.place({ ...frame, x: point.x - frame.wide / 2, y: point.y - frame.tall / 2 });
    hold = { corner, point, frame: { ...framing.frame } };
  });
  canvas.addEventListener("pointermove", (event) => {
    const point = at(event);
    if (!hold) {
      const corner = cornerAt(point);
      canvas.style.cursor = corner ? (corner[0] === corner[1] ? "nwse-resize" : "nesw-resize") : "move";
      return;
    }
    const { corner, frame } = hold, x = point.x - hold.point.x, y = point.y - hold.point.y;
    if (!corner) return framing.place({ ...frame, x: frame.x + x, y: frame.y + y });
    const [down, across] = corner, more = ((across ? x : -x) + (down ? y : -y) / about.shape) / 2;
    const { width, height } = framing.photo, room = Math.min(across ? width - frame.x : frame.x + frame.wide, (down ? height - frame.y : frame.y + frame.tall) / about.shape);
    framing.frame = { ...frame };
    framing.resize(frame.wide + more, 1 - across, 1 - down, room);
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { if (hold) framing.say(); hold = null; });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !framing.photo) return;
    const { frame, photo: { width, height } } = framing, far = STEP * (event.shiftKey ? 5 : 1);
    const [right, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    const larger = { "+": LARGER, "=": LARGER, "-": 1 / LARGER }[event.key];
    if (larger) framing.resize(frame.wide * larger);
    else if (right || down) framing.place({ ...frame, x: frame.x + far * width * right, y: frame.y + far * height * down });
    else return;
    event.preventDefault();
    event.stopPropagation();
    framing.sayLater();
  });
  $("reach").addEventListener("input", (event) => {
    framing.resize(framing.most() * event.target.value / 100);
    framing.sayLater();
  });
}
