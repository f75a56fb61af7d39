/** What lies under the pointer: query token, key token, weight. */

import { el } from "../draw/dom.js";
import { headName, label, shorten } from "../draw/format.js";

export class Tooltip {
  constructor() {
    this.query = el("b");
    this.key = el("b");
    this.numbers = el("span.numbers");
    this.rows = el("div.weights");
    this.node = el(
      "div.tooltip", { role: "status", hidden: true },
      el("div.pair", {}, el("span", {}, "query"), this.query),
      el("div.pair", {}, el("span", {}, "key"), this.key),
      this.rows,
    );
  }

  /** @param place: {query, key, x, y, pane, head}; panes: all of them, for comparison. */
  show(place, scene) {
    this.node.hidden = !place;
    if (!place) return;
    const { map } = place.pane;
    this.query.textContent = describe(map.queryTokens, place.query, map.size?.[0], map.rows);
    this.key.textContent = describe(map.keyTokens, place.key, map.size?.[1], map.columns);
    const compared = scene.panes.filter((pane) => pane.map);
    this.rows.replaceChildren(
      ...compared.flatMap((pane) => {
        const { map: other } = pane;
        const head = place.head === "mean" ? "mean" : Math.min(place.head, other.headCount - 1);
        if (place.query >= other.rows || place.key >= other.columns) return [];
        const name = headName(other, head);
        return [
          el("span", {}, compared.length > 1 ? `${pane.key} · ${name}` : name),
          el("b.weight", {}, other.says(head, place.query, place.key)),
        ];
      }),
    );
    const { innerWidth, innerHeight } = window;
    const box = this.node.getBoundingClientRect();
    const left = place.x + 18 + box.width > innerWidth ? place.x - 14 - box.width : place.x + 18;
    const top = place.y + 18 + box.height > innerHeight ? place.y - 14 - box.height : place.y + 18;
    this.node.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }
}

/** A token with its position; of a pooled map, the positions that were pooled. */
function describe(tokens, index, size, length) {
  const pooled = size && size !== length;
  const first = pooled ? Math.floor((index * size) / length) : index;
  const last = pooled ? Math.ceil(((index + 1) * size) / length) - 1 : index;
  const position = first === last ? `${first}` : `${first}–${last}`;
  const token = tokens ? shorten(label(tokens, index), 40) || "(padding)" : "";
  return token ? `${token}  ${position}` : position;
}
