/** What lies under the pointer: query token, key token, weight; of each pane its own. */

import { positionOf } from "../data/lens.js";
import { el } from "../draw/dom.js";
import { headName, label, shorten } from "../draw/format.js";

export class Tooltip {
  constructor() {
    this.rows = el("div.pairs");
    this.weights = el("div.weights");
    this.node = el("div.tooltip", { role: "status", hidden: true }, this.rows, this.weights);
  }

  /** @param place: {query, key, x, y, pane, head}. */
  show(place, scene) {
    this.node.hidden = !place;
    if (!place) return;
    const compared = scene.shown.filter(({ map }) => map && place.query < map.rows && place.key < map.columns);
    const own = pair(place.pane.map, place);
    const pairs = [[place.pane.key, own], ...compared
      .filter((pane) => pane !== place.pane && !pane.isDifference && !place.pane.isDifference)
      .map((pane) => [pane.key, pair(pane.map, place)])
      .filter(([, [query, key]]) => query !== own[0] || key !== own[1])];
    this.rows.replaceChildren(...pairs.flatMap(([name, [query, key]]) => {
      const which = pairs.length > 1 ? `${name} ` : "";
      return [line(`${which}query`, query), line(`${which}key`, key)];
    }));
    this.weights.replaceChildren(
      ...compared.flatMap((pane) => {
        const { map } = pane;
        const head = place.head === "mean" ? "mean" : Math.min(place.head, map.headCount - 1);
        const name = headName(map, head);
        return [
          el("span", {}, compared.length > 1 ? `${pane.key} · ${name}` : name),
          el("b.weight", {}, map.says(head, place.query, place.key)),
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

function line(what, text) {
  return el("div.pair", {}, el("span", {}, what), el("b", { dir: "auto" }, text));
}

function pair(map, { query, key }) {
  return [
    describe(map, "query", map.queryTokens, query),
    describe(map, "key", map.keyTokens, key),
  ];
}

/** A token with its position; of a pooled map, the positions that were pooled. */
function describe(map, side, tokens, index) {
  const at = positionOf(map, side, index);
  const whole = map.whole ?? map;
  const axis = side === "query" ? 0 : 1;
  const [size, length] = [whole.size?.[axis], axis ? whole.columns : whole.rows];
  const pooled = size && size !== length;
  const first = pooled ? Math.floor((at * size) / length) : at;
  const last = pooled ? Math.ceil(((at + 1) * size) / length) - 1 : at;
  const position = first === last ? `${first}` : `${first}–${last}`;
  const token = tokens ? shorten(label(tokens, index), 40) || "(padding)" : "";
  return token ? `${token}  ${position}` : position;
}
