/** Above the lines: how many keys of each query, and which heads lie over each other. */

import { chooser, el } from "../draw/dom.js";
import { headName } from "../draw/format.js";
import { headColour } from "../draw/palette.js";
import { roving } from "./roving.js";

const COUNTS = [1, 2, 3, 5, 10];

export class LinesTools {
  constructor({ set }) {
    this.set = set;
    this.top = chooser("Keys of each query", (value) => set({ top: value === "all" ? null : Number(value) }));
    this.heads = el("div.chips", { role: "group", "aria-label": "Heads over each other" });
    this.roving = roving(this.heads, "button");
    this.node = el(
      "div.tools", {},
      el("label.stepper", {}, el("span", {}, "keys"), this.top.node),
      this.heads,
    );
  }

  draw(pane, scene, heads) {
    const { map } = pane;
    this.top.show(
      [{ value: "all", text: "all" }, ...COUNTS.filter((n) => n < map.columns).map((n) => ({ value: String(n), text: `${n} largest` }))],
      scene.top === null ? "all" : String(scene.top),
    );
    const over = new Set(heads);
    const signature = JSON.stringify([map.headCount, map.heads, heads, scene.dark]);
    if (signature === this.signature) return;
    this.signature = signature;
    const focused = [...this.heads.children].indexOf(document.activeElement);
    this.heads.hidden = map.headCount < 2;
    this.heads.replaceChildren(
      el("span.caption", {}, "heads"),
      ...Array.from({ length: map.headCount }, (_, head) => {
        const pressed = over.has(head);
        const dot = el("i");
        if (pressed && heads.length > 1) dot.style.background = headColour(head, scene.dark);
        const name = headName(map, head);
        return el(
          "button.chip-button",
          { type: "button", "aria-pressed": String(pressed), title: `${name}: click to add or remove it`, "aria-label": name, onclick: () => this.toggle(heads, head) },
          dot, name.replace("head ", ""),
        );
      }),
    );
    this.roving.refresh();
    if (focused > 0) this.heads.children[focused]?.focus();
  }

  /** Lay a head over the others, or take it away; the last one stays. */
  toggle(heads, head) {
    const known = heads.filter((one) => one !== "mean");
    const next = known.includes(head) ? known.filter((one) => one !== head) : [...known, head].sort((a, b) => a - b);
    if (next.length === 1) this.set({ over: [], head: next[0] });
    else if (next.length) this.set({ over: next, head: next[0] });
  }
}
