/** Heads as a figure, in rows of so many, each with tokens on its axes. */

import { levels } from "./colouring.js";
import { svg } from "./dom.js";
import { axes, image, roomFor, round, tableOf, text } from "./figure_parts.js";
import { fullHeadName, score, words } from "./format.js";
import { css } from "./palette.js";
import { stretched } from "./raster.js";

const MOST_RECTANGLES = 40000; // beyond this, maps go in as images
const GAP = 22;
const TOKEN = 11; // what a token needs along an axis, so that all can be read
const WIDEST = 16000; // a figure that is wider could not become a picture
const LARGEST_CELL = 40;

/** @param {number} size: how large a map is at least; larger where its tokens need that. */
export function grid(heads, columns, size, pane, scene) {
  const { map } = pane;
  const most = Math.max(map.rows, map.columns, 1);
  const hasTokens = Boolean(map.queryTokens ?? map.keyTokens);
  const fitting = Math.min(size / most, LARGEST_CELL);
  const cell = hasTokens ? Math.max(fitting, Math.min(TOKEN, WIDEST / columns / most)) : fitting;
  const isLabelled = hasTokens || cell >= 9;
  const left = isLabelled ? roomFor(map.queryTokens, map.rows, map.queryAt) : 0;
  const top = 20 + (isLabelled ? roomFor(map.keyTokens, map.columns, map.keyAt) : 0);
  const sides = stretched(map, cell);
  const [w, h] = [map.columns * sides.wide, map.rows * sides.high];
  const asImages = heads.length * map.rows * map.columns * scene.shown.length > MOST_RECTANGLES;
  const nodes = heads.map((head, i) => {
    const [x, y] = [(i % columns) * (left + w + GAP), Math.floor(i / columns) * (top + h + GAP)];
    const value = pane.scoreOf(scene.score, head);
    const name = fullHeadName(map, head) + (value === undefined ? "" : ` · ${words(scene.score)} ${score(value)}`);
    return svg(
      "g", { transform: `translate(${x} ${y})` },
      text(left, 12, name, { "font-weight": 600 }),
      ...(isLabelled ? axes(map, left, top, sides, scene) : []),
      svg("rect", { x: left, y: top, width: w, height: h, fill: scene.theme.blocked }),
      svg("g", { transform: `translate(${left} ${top})` }, asImages ? image(map, head, w, h, scene) : cells(map, head, sides, scene)),
      svg("rect", { x: left, y: top, width: w, height: h, fill: "none", stroke: scene.theme.rule }),
    );
  });
  const rows = Math.ceil(heads.length / columns);
  return {
    nodes,
    width: Math.max(260, Math.min(columns, heads.length) * (left + w + GAP) - GAP),
    height: rows * (top + h + GAP) - GAP,
  };
}

/** The cells as rectangles, neighbours of one colour as one. */
function cells(map, head, { wide, high }, scene) {
  const places = levels(map, head, scene.scale);
  const table = tableOf(map, scene);
  const group = svg("g", { "shape-rendering": "crispEdges" });
  for (let q = 0; q < map.rows; q += 1) {
    for (let k = 0; k < map.columns; ) {
      const place = places[q * map.columns + k];
      let end = k + 1;
      while (end < map.columns && places[q * map.columns + end] === place) end += 1;
      if (place !== -1) {
        const fill = place === -2 ? "#d62878" : css(table, place);
        group.append(svg("rect", {
          x: round(k * wide), y: round(q * high), width: round((end - k) * wide), height: round(high), fill,
        }));
      }
      k = end;
    }
  }
  return group;
}
