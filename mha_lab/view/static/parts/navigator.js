/** All heads of all layers as a strip of coloured cells each, or ranked: the way to every map. */

import { chooser, el, segmented } from "../draw/dom.js";
import { score, visible, words } from "../draw/format.js";
import { css } from "../draw/palette.js";
import { ranks } from "./navigator_ranks.js";
import { strips } from "./navigator_strips.js";
import { roving } from "./roving.js";

export class Navigator {
  constructor({ choose, set }) {
    this.choose = choose;
    this.score = chooser("Score", (value) => set({ score: value }));
    this.order = segmented(
      "Order",
      [
        { value: "model", text: "Layers", title: "In the model's order" },
        { value: "high", text: "High", title: "Highest score first" },
        { value: "low", text: "Low", title: "Lowest score first" },
      ],
      (value) => set({ order: value }),
    );
    this.filter = el("input", {
      type: "search", placeholder: "Filter layers  /", "aria-label": "Filter layers",
      oninput: () => this.draw(this.scene, this.table),
    });
    this.list = el("div.layers", { role: "group", "aria-label": "Layers and heads" });
    this.roving = roving(this.list, "button");
    this.legend = el("div.span");
    this.node = el(
      "section.navigator", { "aria-label": "Heads by score" },
      el("h2", {}, "Heads by score"),
      (this.scored = el(
        "div", {},
        el("div.row", {}, this.score.node),
        el("div.row", {}, el("span.caption", {}, "order"), this.order.node),
        this.legend,
      )),
      this.filter,
      this.list,
    );
  }

  draw(scene, table) {
    Object.assign(this, { scene, table });
    this.score.show(
      scene.scoreNames.map((name) => ({ value: name, text: words(name) })),
      scene.score,
    );
    this.scored.hidden = scene.scoreNames.length === 0; // as of value-weighted maps
    this.order.show(scene.order);
    this.score.node.title = scene.scoreTitle;
    const panes = scene.panes.filter((pane) => pane.entry);
    this.filter.hidden = (panes[0]?.entries.length ?? 0) < 9 && this.filter.value === "";
    const rankings = panes.map((pane) => pane.ranking(scene.score, "model"));
    const values = rankings.flat().flatMap(({ value }) => (value === undefined || value === null ? [] : [value]));
    const range = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
    this.drawLegend(values.length ? range : null);
    const make = scene.order === "model" ? strips : ranks;
    const { signature, build, paint } = make({
      panes, rankings, scene, table, range, choose: this.choose, matches: (text) => this.matches(text),
    });
    if (signature !== this.signature) {
      this.signature = signature;
      const scrolled = this.list.scrollTop;
      const held = [...this.list.querySelectorAll("button")].indexOf(document.activeElement);
      this.list.replaceChildren(...build());
      this.list.scrollTop = scrolled;
      if (held >= 0) this.list.querySelectorAll("button")[held]?.focus({ preventScroll: true });
    }
    paint([...this.list.querySelectorAll("[data-head]")]);
    this.roving.refresh(this.list.querySelector(".chosen, [aria-current=true]"));
  }

  drawLegend(range) {
    if (!range) {
      this.legend.replaceChildren();
      return;
    }
    const stops = Array.from({ length: 9 }, (_, i) => css(this.table, Math.round((i * 255) / 8)));
    const bar = el("i");
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    this.legend.replaceChildren(el("span", {}, score(range[0])), bar, el("span", {}, score(range[1])));
  }

  matches(text) {
    return visible(text).toLowerCase().includes(this.filter.value.trim().toLowerCase());
  }
}
