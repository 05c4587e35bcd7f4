// The runs of this browser, newest first. Whoever knows an id may see the run, so the list never leaves the browser but in questions.
const MOST_RUNS = 50, OWN_RUNS = "vitdemo-runs", BROWSER_SECRET = "vitdemo-browser", OWN_RACE = "vitdemo-race";
const mine = {
  list() {
    try {
      const known = JSON.parse(localStorage.getItem(OWN_RUNS) ?? "[]");
      return Array.isArray(known) ? known.filter((id) => typeof id === "string").slice(0, MOST_RUNS) : [];
    // storage may be forbidden: then the list lasts as long as the page
    } catch { return window.vitdemoRuns ?? []; }
  },
  add(id) { mine.keep([id, ...mine.list().filter((known) => known !== id)].slice(0, MOST_RUNS)); },
  remove(id) { mine.keep(mine.list().filter((known) => known !== id)); },
  // The race of this browser, null where there is none.
  race() {
    try {
      const known = JSON.parse(localStorage.getItem(OWN_RACE) ?? "null");
      return Array.isArray(known?.runs) ? known : null;
    } catch { return null; }
  },
  unvoted: (race) => Boolean(race && !race.vote && !race.looked),
  // The runs of a race on which nobody voted yet: nothing of the page may show how good they are.
  sealed() {
    const race = mine.race();
    return mine.unvoted(race) ? race.runs.map(({ run }) => run) : [];
  },
  // A secret of this browser's, which the server never shows; empty where storage is forbidden.
  secret() {
    try {
      if (!localStorage.getItem(BROWSER_SECRET)) {
        const random = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
        localStorage.setItem(BROWSER_SECRET, random);
      }
      return localStorage.getItem(BROWSER_SECRET);
    } catch { return ""; }
  },
  // What says whose a new run is: the list, and the secret, so that two tabs with an empty list do not both start one.
  known: () => [mine.secret(), ...mine.list()].filter(Boolean).slice(0, MOST_RUNS),
  // Every part of the page that shows one's runs hears of it: it listens with `changed`, which also tells what another tab did.
  keep(runs) {
    window.vitdemoRuns = runs;
    try { localStorage.setItem(OWN_RUNS, JSON.stringify(runs)); } catch { /* see `list` */ }
    mine.tell();
  },
  tell() { window.dispatchEvent(new Event(OWN_RUNS)); },
  changed(act) {
    window.addEventListener(OWN_RUNS, () => { if (root.isConnected) act(mine.list()); });
    window.addEventListener("storage", (event) => { if (event.key === OWN_RUNS && root.isConnected) act(mine.list()); });
  },
};
