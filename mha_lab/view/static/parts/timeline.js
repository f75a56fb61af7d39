/** The steps of training: a slider that can play. */

import { chooser, el, icon } from "../draw/dom.js";
import { count } from "../draw/format.js";

const FEWEST_AHEAD = 4; // steps that are fetched ahead; else those of the next second
const ROOM_AHEAD = 32 * 2 ** 20; // bytes of weights
const LATEST = 250; // ms that are caught up; what is later than that is let go

export class Timeline {
  /** @param {(steps) => void} ahead: fetch what later steps need. */
  constructor({ set }, ahead) {
    Object.assign(this, { set, ahead });
    this.steps = [];
    this.timer = null;
    this.button = el("button.play", { type: "button", title: "Play (space)", onclick: () => this.toggle() });
    this.slider = el("input", {
      type: "range", min: 0, step: 1, "aria-label": "Training step",
      oninput: () => this.go(Number(this.slider.value)),
      onpointerdown: () => (this.dragging = true),
      onpointerup: () => (this.dragging = false),
    });
    this.label = el("output");
    this.of = el("span.of");
    this.speed = chooser("Steps a second when playing", (value) => set({ speed: Number(value) }));
    this.live = el("button.live", {
      type: "button", title: "Look for new steps while training (f)",
      onclick: () => set({ live: !this.isLive }),
    }, el("i"), "Live");
    this.node = el(
      "footer.timeline", {},
      this.button, this.slider, el("span.where", {}, this.label, this.of), this.speed.node, this.live,
    );
    this.showPlaying();
  }

  draw(scene, state, grows) {
    this.node.hidden = !scene.hasSteps;
    this.live.hidden = !grows;
    this.steps = scene.steps;
    this.index = Math.max(0, scene.steps.indexOf(scene.step));
    this.isLive = state.live;
    this.rate = state.speed;
    this.reach = Math.max(1, Math.min(Math.max(FEWEST_AHEAD, this.rate), Math.floor(ROOM_AHEAD / bytesOf(scene))));
    this.slider.max = Math.max(0, scene.steps.length - 1);
    this.slider.disabled = scene.steps.length < 2;
    this.button.disabled = scene.steps.length < 2;
    if (!this.dragging) this.slider.value = this.index; // the hand is ahead of what is loaded
    const part = scene.steps.length > 1 ? (100 * this.index) / (scene.steps.length - 1) : 100;
    this.slider.style.setProperty("--part", `${part}%`);
    this.slider.setAttribute("aria-valuetext", `step ${scene.step}`);
    this.label.textContent = scene.step === undefined ? "no steps" : `step ${count(scene.step)}`;
    this.of.textContent = scene.steps.length ? `${this.index + 1} of ${scene.steps.length}` : "";
    this.speed.show([1, 2, 4, 8, 16].map((n) => ({ value: String(n), text: `${n}/s` })), String(state.speed));
    this.live.setAttribute("aria-pressed", String(state.live));
  }

  /** Show the step at a place; at the last one, follow training. */
  go(index) {
    const last = this.steps.length - 1;
    if (last < 0) return;
    const place = Math.min(Math.max(index, 0), last);
    this.index = place;
    return this.set({ step: place === last ? null : this.steps[place] });
  }

  move(by) {
    this.go(this.index + by);
  }

  get playing() {
    return this.timer !== null;
  }

  toggle() {
    if (this.playing) this.stop();
    else {
      if (this.index >= this.steps.length - 1) this.index = -1; // from the beginning
      this.timer = true;
      this.due = performance.now();
      this.fetched = this.index;
      this.tick();
    }
    this.showPlaying();
  }

  stop() {
    window.clearTimeout(this.timer);
    this.timer = null;
    this.set({}); // the address was not written meanwhile
    this.showPlaying();
  }

  /** One step, once the one before has been drawn. */
  async tick() {
    const drawn = this.go(this.index + 1);
    this.fetchAhead();
    await drawn;
    if (!this.playing) return;
    if (this.index >= this.steps.length - 1) {
      this.stop();
      return;
    }
    // By a clock: one step that came late does not make all later ones late.
    const now = performance.now();
    this.due = Math.max(this.due + 1000 / this.rate, now - LATEST);
    this.timer = window.setTimeout(() => this.tick(), Math.max(0, this.due - now));
  }

  /** What comes next is fetched while this one is drawn and looked at, a few steps at a time. */
  fetchAhead() {
    const last = Math.min(this.index + this.reach, this.steps.length - 1);
    const fetched = this.fetched > last ? this.index : this.fetched; // moved back by hand
    let first = Math.max(this.index, fetched) + 1;
    const few = Math.min(this.reach, FEWEST_AHEAD);
    while (last - first + 1 >= few || (first <= last && last === this.steps.length - 1)) {
      this.ahead(this.steps.slice(first, first + few));
      first += few;
    }
    this.fetched = first - 1;
  }

  /** Nothing is asked for now: playing may begin, at the next step or from the beginning. */
  rest() {
    if (this.steps.length < 2) return;
    const from = this.index >= this.steps.length - 1 ? 0 : this.index + 1;
    this.ahead(this.steps.slice(from, from + Math.min(this.reach, FEWEST_AHEAD)));
  }

  showPlaying() {
    this.button.replaceChildren(icon(this.playing ? "pause" : "play"));
    this.button.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    this.button.setAttribute("aria-pressed", String(this.playing));
  }
}

/** How much one step of what is shown takes: weights, or the codes alone, which thumbnails are made from. */
function bytesOf({ panes, view }) {
  const sizes = panes.map(({ whole, entries }) =>
    (view === "overview" ? entries.length * (whole?.codes.byteLength ?? 0) : (whole?.bytes ?? 0)));
  return Math.max(1, sizes.reduce((a, b) => a + b, 0));
}
