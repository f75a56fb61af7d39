/** What the figures are made of: texts, pictures, tokens on axes. */

import { picture } from "./colouring.js";
import { svg } from "./dom.js";
import { label, shorten } from "./format.js";
import { textWidth } from "./measure.js";

export const MONO = 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace';
export const SANS = 'system-ui, "Segoe UI", Roboto, Helvetica, Arial, "Noto Sans CJK SC", sans-serif';
const LONGEST = 24;
const LINE = 11; // what a token takes along an axis

const canvases = new WeakMap(); // SVG image to the canvas that it shows

export function canvasOf(node) {
  return canvases.get(node);
}

export function text(x, y, content, attributes = {}) {
  return svg("text", { x: round(x), y: round(y), "xml:space": "preserve", ...attributes }, content);
}

export function tableOf(map, scene) {
  return map.isDifference ? scene.differences : scene.table;
}

/** A map as an image whose address is written when the figure is saved. */
export function image(map, head, width, height, scene) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [map.columns, map.rows];
  canvas.getContext("2d").putImageData(picture(map, head, scene.scale, tableOf(map, scene)), 0, 0);
  const node = svg("image", { width, height, preserveAspectRatio: "none", style: "image-rendering: pixelated" });
  canvases.set(node, canvas);
  return node;
}

/** The widest label of an axis, in pixels. */
export function roomFor(tokens, length, at) {
  let most = 0;
  for (let i = 0; i < length; i += 1) most = Math.max(most, textWidth(shorten(label(tokens, i, at), LONGEST)));
  return Math.ceil(most) + 8;
}

export function axes(map, left, top, { wide, high }, scene) {
  const nodes = [];
  const style = { "font-family": MONO, "font-size": 11, fill: scene.theme.muted };
  for (let q = 0; q < map.rows; q += Math.ceil(LINE / high)) {
    const y = top + (q + 0.5) * high + 4;
    nodes.push(text(left - 5, y, shorten(label(map.queryTokens, q, map.queryAt), LONGEST), { ...style, "text-anchor": "end" }));
  }
  for (let k = 0; k < map.columns; k += Math.ceil(LINE / wide)) {
    const [x, y] = [left + (k + 0.5) * wide + 4, top - 5];
    const turned = { ...style, transform: `rotate(-90 ${x} ${y})` };
    nodes.push(text(x, y, shorten(label(map.keyTokens, k, map.keyAt), LONGEST), turned));
  }
  return nodes;
}

export function round(number) {
  return Math.round(number * 100) / 100;
}
