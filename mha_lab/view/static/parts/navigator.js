/** All heads of all layers as a strip of coloured cells each, or ranked: the way to every map. */

import { chooser, el, segmented } from "../draw/dom.js";
import { headName, score, visible, withoutFiller, words } from "../draw/format.js";
import { LEVELS, css } from "../draw/palette.js";

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
    this.list = el("div.layers", { role: "listbox", "aria-label": "Layers and heads" });
    this.legend = el("div.span");
    this.node = el(
      "section.navigator", {},
      el("h2", {}, "Heads by score"),
      el("div.row", {}, this.score.node),
      el("div.row", {}, el("span.caption", {}, "order"), this.order.node),
      this.legend,
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
    this.order.show(scene.order);
    this.score.node.title = scene.scoreTitle;
    const panes = scene.panes.filter((pane) => pane.entry);
    this.filter.hidden = (panes[0]?.entries.length ?? 0) < 9 && this.filter.value === "";
    const values = panes.flatMap((pane) =>
      pane.ranking(scene.score, "model").map(({ value }) => value ?? null).filter((v) => v !== null),
    );
    this.low = Math.min(...values);
    this.high = Math.max(...values);
    this.legend.replaceChildren(
      ...(values.length ? [el("span", {}, score(this.low)), this.bar(), el("span", {}, score(this.high))] : []),
    );
    const scrolled = this.list.scrollTop;
    this.list.replaceChildren(
      ...(scene.order === "model" ? this.strips(panes) : this.ranks(panes)),
    );
    this.list.scrollTop = scrolled;
  }

  bar() {
    const stops = Array.from({ length: 9 }, (_, i) => css(this.table, Math.round((i * 255) / 8)));
    const bar = el("i");
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    return bar;
  }

  matches(text) {
    return text.toLowerCase().includes(this.filter.value.trim().toLowerCase());
  }

  /** A layer: its name, and under it a strip of cells for each run. */
  strips(panes) {
    const [first] = panes;
    if (!first) return [];
    const all = panes.map((pane) => pane.ranking(this.scene.score, "model"));
    return first.entries.filter((entry) => this.matches(entry.tag)).map((entry, place) => {
      const strips = panes.map((pane, i) => {
        const own = pane.entries.some((one) => one.tag === entry.tag)
          ? entry.tag : i > 0 ? pane.entries[place]?.tag : null;
        const heads = all[i].filter((one) => one.tag === own);
        return el("div.strip", {}, ...heads.map((one) => this.cell(pane, one, panes.length > 1)));
      });
      const current = entry.tag === first.entry.tag;
      const name = el(
        "button.layer", {
          type: "button", title: visible(entry.tag), "aria-pressed": current,
          onclick: () => this.choose(entry.tag, null),
        },
        visible(first.shortName(entry.tag)),
      );
      return el(current ? "div.entry.current" : "div.entry", {}, name, ...strips);
    });
  }

  cell(pane, { tag, head, value }, compared) {
    const about = pane.scores?.byTag.get(tag);
    const name = headName(about && { heads: about.heads, headCount: about.head_count }, head);
    const chosen = tag === pane.entry.tag && head === this.scene.head;
    const node = el(chosen ? "button.cell.chosen" : "button.cell", {
      type: "button",
      title: `${compared ? `${pane.key} · ` : ""}${name}: ${score(value)}`,
      "aria-label": `${name}, ${words(this.scene.score ?? "")} ${score(value)}`,
      onclick: () => this.choose(tag, head, pane),
    });
    if (value !== undefined) node.style.background = css(this.table, this.level(value));
    return node;
  }

  level(value) {
    const part = this.high > this.low ? (value - this.low) / (this.high - this.low) : 0.5;
    // The lowest colours are the page's own; a cell must be seen.
    return Math.round((0.08 + 0.92 * part) * (LEVELS - 1));
  }

  ranks(panes) {
    const { score: by, order } = this.scene;
    const all = panes.flatMap((pane) => pane.ranking(by, order).map((one) => ({ ...one, pane })));
    const sign = order === "high" ? -1 : 1;
    const key = ({ value }) => (value === undefined ? Infinity : sign * value);
    all.sort((a, b) => key(a) - key(b) || 0);
    return all.filter(({ tag }) => this.matches(tag)).map(({ pane, tag, head, value }, i) => {
      const about = pane.scores?.byTag.get(tag);
      const name = headName(about && { heads: about.heads, headCount: about.head_count }, head);
      const chosen = tag === pane.entry.tag && head === this.scene.head;
      const bar = el("i");
      const part = this.high > this.low ? ((value ?? this.low) - this.low) / (this.high - this.low) : 1;
      bar.style.width = `${100 * part}%`;
      bar.style.background = css(this.table, this.level(value ?? this.low));
      return el(
        chosen ? "button.rank-row.chosen" : "button.rank-row",
        { type: "button", title: visible(tag), onclick: () => this.choose(tag, head, pane) },
        el("span.place", {}, `${i + 1}`),
        el(
          "span.name",
          {},
          el("span.layer", {}, `${panes.length > 1 ? `${pane.key} ` : ""}${withoutFiller(visible(pane.shortName(tag)))}`),
          el("span.head", {}, `\u00a0· ${name.replace("head ", "")}`),
        ),
        el("span.value", {}, score(value)),
        el("span.bar", {}, bar),
      );
    });
  }
}
