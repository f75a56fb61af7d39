/** Every head of every layer as a figure. */

import { svg } from "./dom.js";
import { image, text } from "./figure_parts.js";
import { score, shorten, visible } from "./format.js";
import { fitted } from "./raster.js";

const SIZE = 72;

/** @param overview: Map from a pane to its loaded maps by tag. */
export function thumbnails(pane, scene, overview) {
  const wanted = pane.ranking(scene.score, scene.order);
  const layers = scene.order === "model" ? new Map() : null;
  const columns = layers ? wanted.reduce((most, one) => Math.max(most, one.head + 1), 1) : Math.ceil(Math.max(8, Math.sqrt(wanted.length)));
  const nodes = [];
  wanted.forEach(({ tag, head, value }, i) => {
    const map = overview.get(pane).get(tag);
    if (!map) return;
    if (layers && !layers.has(tag)) layers.set(tag, layers.size);
    const [row, column] = layers ? [layers.get(tag), head] : [Math.floor(i / columns), i % columns];
    const [x, y] = [column * (SIZE + 10), row * (SIZE + 40) + 16];
    const [w, h] = fitted(map, SIZE);
    if (!layers || column === 0) {
      nodes.push(text(x, y - 4, shorten(visible(pane.shortName(tag)), layers ? 60 : 12), { "font-size": 10, fill: scene.theme.muted }));
    }
    nodes.push(
      svg("rect", { x, y, width: w, height: h, fill: scene.theme.blocked }),
      ...(w > 0 ? [svg("g", { transform: `translate(${x} ${y})` }, image(map, head, w, h, scene))] : []),
      text(x, y + h + 12, `${map.heads ? map.heads[head] : head}${value === undefined ? "" : ` · ${score(value)}`}`, { "font-size": 10 }),
    );
  });
  const rows = layers ? layers.size : Math.ceil(wanted.length / columns);
  return { nodes, width: Math.max(260, columns * (SIZE + 10) - 10), height: rows * (SIZE + 40) };
}
