/** The lines of one head, or of several over each other, as a figure. */

import { indexOf } from "../data/lens.js";
import { svg } from "./dom.js";
import { MONO, round, tableOf, text } from "./figure_parts.js";
import { headName, label, shorten } from "./format.js";
import { gather } from "./lines.js";
import { css, headColour } from "./palette.js";

const STEP = 18;
const [LEFT, RIGHT] = [150, 410];

export function linesFigure(pane, scene) {
  const { map } = pane;
  const over = scene.over.filter((head) => head < map.headCount);
  const heads = over.length ? over : [scene.headOf(map)];
  const most = Math.max(map.rows, map.columns);
  const y = (own, i) => 30 + (i + 0.5 + (most - own) / 2) * STEP;
  const style = { "font-family": MONO, "font-size": 12 };
  const focus = indexOf(map, "query", scene.query);
  const nodes = [text(0, 12, heads.map((head) => headName(map, head)).join(", "), { "font-weight": 600 })];
  for (const head of heads) {
    for (const { query, key, part, place, among } of gather(map, head, scene)) {
      if (focus >= 0 ? query !== focus : !among) continue;
      const [from, to] = [y(map.rows, query), y(map.columns, key)];
      nodes.push(svg("path", {
        d: `M${LEFT} ${from}C${LEFT + 110} ${from} ${RIGHT - 110} ${to} ${RIGHT} ${to}`, fill: "none",
        stroke: heads.length > 1 ? headColour(head, scene.dark) : css(tableOf(map, scene), Math.floor(place / 256) * 256 + Math.round(50 + 0.8 * (place % 256))),
        "stroke-width": round(0.6 + 3 * part * part), "stroke-opacity": round(0.4 + 0.6 * part),
      }));
    }
  }
  for (let q = 0; q < map.rows; q += 1) {
    const bold = focus === q ? { "font-weight": 700 } : {};
    nodes.push(text(LEFT - 8, y(map.rows, q) + 4, shorten(label(map.queryTokens, q, map.queryAt), 18), { ...style, ...bold, "text-anchor": "end" }));
  }
  for (let k = 0; k < map.columns; k += 1) {
    nodes.push(text(RIGHT + 8, y(map.columns, k) + 4, shorten(label(map.keyTokens, k, map.keyAt), 18), style));
    if (focus < 0) continue;
    nodes.push(text(RIGHT + 200, y(map.columns, k) + 4, map.says(heads[0], focus, k), { fill: scene.theme.muted, "text-anchor": "end" }));
  }
  return { nodes, width: 620, height: 40 + most * STEP };
}
