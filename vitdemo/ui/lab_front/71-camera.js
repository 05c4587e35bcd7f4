// The camera: one at a time, for one class; let go of as soon as it is closed, folded away, or the page is left.
const { openCamera, closeCamera } = (() => {
  const EVERY = 160, MOST_WAITING = 30;                                  // ms between two pictures while the button is held
  let stream = null, card = null, video = null, timer = 0, facing = "user", turn = 0;

  async function openCamera(wanted) {
    if (card === wanted) { closeCamera(); return; }
    closeCamera();
    card = wanted;
    const { lens } = card, words = make("p", { class: "vl-hint", role: "status", text: WORDS.camera_waiting }), mine_ = ++turn;
    card.camera.setAttribute("aria-pressed", "true");
    lens.hidden = false;
    lens.replaceChildren(words);
    try {
      if (!navigator.mediaDevices?.getUserMedia) throw Object.assign(new Error(), { name: "Insecure" });
      const got = await navigator.mediaDevices.getUserMedia({ video: { facingMode: facing, width: { ideal: 640 },
        height: { ideal: 480 } } });
      if (mine_ !== turn) { for (const track of got.getTracks()) track.stop(); return; }
      stream = got;
      for (const track of stream.getTracks()) track.addEventListener("ended", () => mine_ === turn && closeCamera());
      await build(lens);
    } catch (failure) {
      if (mine_ !== turn) return;
      words.className = "vl-trouble";
      words.textContent = WORDS.camera_refused[failure.name] ?? WORDS.camera_unusable;
      lens.replaceChildren(words);
      card.camera.removeAttribute("aria-pressed");
      card = null;
    }
  }

  async function build(lens) {
    video = make("video", { playsinline: true, muted: true, autoplay: true, "aria-label": WORDS.camera_sees });
    video.muted = true;
    video.srcObject = stream;
    video.dataset.mirrored = String(facing === "user");
    const shoot = make("button", { type: "button", class: "vl-primary vl-shoot", text: WORDS.camera_hold });
    const close = make("button", { type: "button", class: "vl-button", text: WORDS.camera_close,
      onclick: () => { const { camera } = card; closeCamera(); camera.focus(); } });
    const many = (await navigator.mediaDevices.enumerateDevices()).filter((device) => device.kind === "videoinput").length > 1;
    const turnRound = make("button", { type: "button", class: "vl-button", text: WORDS.camera_other, hidden: !many,
      onclick: () => { const again = card; facing = facing === "user" ? "environment" : "user"; closeCamera(); openCamera(again); } });
    lens.onkeydown = (event) => { if (event.key === "Escape") { event.stopPropagation(); close.click(); } };
    lens.replaceChildren(make("div", { class: "vl-video" }, video), make("div", { class: "vl-row" }, shoot, turnRound, close),
      make("p", { class: "vl-hint", text: WORDS.camera_hint }));
    hold(shoot);
    shoot.focus({ preventScroll: true });
  }

  // Pictures are taken as long as the button is held, with a finger or a key; a click from a screen reader takes one.
  function hold(button) {
    const start = (event) => {
      if (event.type === "keydown") { if (![" ", "Enter"].includes(event.key)) return; event.preventDefault(); }
      if (event.repeat || timer || event.button > 0) return;
      if (event.pointerId !== undefined) button.setPointerCapture(event.pointerId);
      shot();
      timer = setInterval(() => shot(true), EVERY);
      button.dataset.held = "true";
    };
    const end = () => { clearInterval(timer); timer = 0; button.dataset.held = "false"; };
    button.addEventListener("pointerdown", start);
    button.addEventListener("keydown", start);
    for (const event of ["pointerup", "pointercancel", "lostpointercapture", "keyup", "blur"]) button.addEventListener(event, end);
    button.addEventListener("contextmenu", (event) => event.preventDefault());            // a long press is no menu here
    button.addEventListener("click", (event) => { if (event.detail === 0 && event.isTrusted && !event.pointerType) shot(); });
  }

  // The middle square, as the preview shows it but not mirrored: so the model gets what it will get later.
  function shot(together = false) {
    if (!video?.videoWidth || card.waiting >= MOST_WAITING) return;
    const side = Math.min(video.videoWidth, video.videoHeight),
      url = jpegOf(video, side, side, { left: (video.videoWidth - side) / 2, top: (video.videoHeight - side) / 2 });
    card.add(() => url, WORDS.from_camera, together);
    if (!calm()) video.parentNode.animate?.([{ opacity: 0.55 }, { opacity: 1 }], { duration: 140 });
  }

  function closeCamera() {
    turn++;
    clearInterval(timer);
    timer = 0;
    for (const track of stream?.getTracks() ?? []) track.stop();
    if (card) { card.lens.replaceChildren(); card.lens.hidden = true; card.camera.removeAttribute("aria-pressed"); }
    if (video) video.srcObject = null;
    stream = card = video = null;
  }

  window.addEventListener("pagehide", closeCamera);
  // another tab of the page, also where the video was scrolled away
  new ResizeObserver(() => { if (card && !root.offsetParent) closeCamera(); }).observe(root);
  document.addEventListener("visibilitychange", () => { if (document.hidden) closeCamera(); });
  return { openCamera, closeCamera };
})();
