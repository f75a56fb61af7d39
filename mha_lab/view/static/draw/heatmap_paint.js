/** What is painted on a head's canvas: cells, lines between them, weights, marks and tokens. */

import { indexOf } from "../data/lens.js";
import { level, picture, tops } from "./colouring.js";
import { found, label, shorten } from "./format.js";
import { LABEL_FONT } from "./measure.js";
import { inkOn } from "./palette.js";
import { drawPicture } from "./raster.js";

export const LONGEST_LABEL = 18;

/** @param heatmap: has map, head, layout {left, top, cell, wide, high, labelled} and values (write weights). */
export function paint(context, heatmap, scene) {
  const { map, head, values, layout } = heatmap;
  const { left, top, cell, wide, high } = layout;
  const { scale, theme } = scene;
  const table = map.isDifference ? scene.differences : scene.table;
  const [w, h] = [map.columns * wide, map.rows * high];
  context.fillStyle = theme.blocked;
  context.fillRect(left, top, w, h);
  drawPicture(context, picture(map, head, scale, table), left, top, w, h);
  if (cell >= 9) paintRules(context, heatmap, theme.page);
  context.strokeStyle = theme.rule;
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, top + 0.5, Math.max(0, w - 1), Math.max(0, h - 1));
  if (values && cell >= 30) paintValues(context, heatmap, scene, table);
  paintMarks(context, heatmap, scene);
  if (layout.labelled) paintLabels(context, heatmap, scene);
}

/** Lines between cells that are large enough. */
function paintRules(context, { map, layout }, colour) {
  const { left, top, wide, high } = layout;
  const [w, h] = [map.columns * wide, map.rows * high];
  context.fillStyle = colour;
  context.globalAlpha = 0.3;
  for (let k = 1; k < map.columns; k += 1) context.fillRect(left + k * wide - 0.5, top, 1, h);
  for (let q = 1; q < map.rows; q += 1) context.fillRect(left, top + q * high - 0.5, w, 1);
  context.globalAlpha = 1;
}

/** The weights themselves, where cells have room for them. */
function paintValues(context, { map, head, layout }, { scale, theme }, table) {
  const { left, top, cell, wide, high } = layout;
  const full = tops(map, head, scale);
  context.font = `${Math.min(13, cell * 0.33)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let q = 0; q < map.rows; q += 1) {
    for (let k = 0; k < map.columns; k += 1) {
      const value = map.weight(head, q, k);
      const place = level(value, typeof full === "number" ? full : full[q], scale.curve);
      if (place === -1 || Math.abs(value) < 0.005) continue;
      context.fillStyle = place < 0 ? theme.page : inkOn(table, place);
      const text = Number.isNaN(value) ? "nan" : value.toFixed(2).replace(/^(-?)0\./, "$1.").replace("-", "−");
      context.fillText(text, left + (k + 0.5) * wide, top + (q + 0.5) * high);
    }
  }
}

/** Beside the axes: the query that is followed, and tokens that were searched for. */
function paintMarks(context, { map, layout }, { theme, find, query }) {
  const { left, top, wide, high } = layout;
  context.fillStyle = theme.accent;
  const thickness = Math.max(2, high);
  const followed = indexOf(map, "query", query);
  if (followed >= 0) context.fillRect(Math.max(0, left - 4), top + followed * high, 3, thickness);
  if (!find) return;
  const [w, h] = [map.columns * wide, map.rows * high];
  context.globalAlpha = 0.35;
  for (let q = 0; q < map.rows; q += 1) {
    if (found(map.queryTokens, q, find)) context.fillRect(left, top + (q + 0.5) * high - 0.75, w, 1.5);
  }
  for (let k = 0; k < map.columns; k += 1) {
    if (found(map.keyTokens, k, find)) context.fillRect(left + (k + 0.5) * wide - 0.75, top, 1.5, h);
  }
  context.globalAlpha = 1;
}

/** Tokens on the axes; where there is not room for all, every so many, and those searched for. */
function paintLabels(context, { map, layout }, { theme, find }) {
  const { left, top, wide, high } = layout;
  const shown = (tokens, i, size) => {
    const hit = find && found(tokens, i, find);
    context.fillStyle = hit ? theme.accent : theme.muted;
    return hit || i % Math.ceil(12 / size) === 0;
  };
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (let q = 0; q < map.rows; q += 1) {
    if (!shown(map.queryTokens, q, high)) continue;
    context.fillText(shorten(label(map.queryTokens, q, map.queryAt), LONGEST_LABEL), left - 6, top + (q + 0.5) * high, left - 6);
  }
  if (left >= 44 && top >= 36) {
    context.fillStyle = theme.muted;
    context.font = "italic 10px system-ui, sans-serif";
    context.fillText("key →", left - 6, top - 26);
    context.fillText("query ↓", left - 6, top - 13);
    context.font = LABEL_FONT;
  }
  context.textAlign = "left";
  for (let k = 0; k < map.columns; k += 1) {
    if (!shown(map.keyTokens, k, wide)) continue;
    context.save();
    context.translate(left + (k + 0.5) * wide, top - 6);
    context.rotate(-Math.PI / 2);
    context.fillText(shorten(label(map.keyTokens, k, map.keyAt), LONGEST_LABEL), 0, 0, top - 6);
    context.restore();
  }
}
