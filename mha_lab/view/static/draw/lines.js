/** Which weights of a head are drawn as lines, and the largest of one token in words. */

import { levels } from "./colouring.js";
import { label, shorten, visible } from "./format.js";
import { LEVELS } from "./palette.js";

const MOST_LINES = 3000; // more are a cloud
const FAINTEST = 0.04; // of the colours; fainter lines are left out

/**
 * The lines of a head, the faintest first: [{query, key, part, place}].
 *
 * @param {object} scene: scale; top: only so many keys a query, or null.
 */
export function gather(map, head, { scale, top }) {
  const places = levels(map, head, scale);
  const kept = top === null ? null : largest(map, head, top);
  const counts = new Uint32Array(LEVELS);
  for (let i = 0; i < places.length; i += 1) {
    if (places[i] >= 0 && (!kept || kept[i])) counts[places[i] % LEVELS] += 1;
  }
  let faintest = LEVELS - 1;
  for (let sum = counts[faintest]; faintest > 1; faintest -= 1) {
    sum += counts[faintest - 1];
    if (sum > MOST_LINES) break;
  }
  const lines = [];
  for (let i = 0; i < places.length; i += 1) {
    const place = places[i];
    if (place < 0 || (kept && !kept[i])) continue;
    const part = (place % LEVELS) / (LEVELS - 1);
    const [query, key] = [Math.floor(i / map.columns), i % map.columns];
    const among = place % LEVELS >= faintest && part >= FAINTEST;
    lines.push({ query, key, part, place, among });
  }
  return lines.sort((a, b) => a.part - b.part);
}

/** Which weights are among the largest of their row. */
function largest(map, head, count) {
  const weights = map.of(head);
  const kept = new Uint8Array(weights.length);
  for (let q = 0; q < map.rows; q += 1) {
    const row = Array.from({ length: map.columns }, (_, k) => k);
    const size = (k) => Math.abs(weights[q * map.columns + k]);
    row.sort((a, b) => size(b) - size(a));
    for (const k of row.slice(0, count)) kept[q * map.columns + k] = 1;
  }
  return kept;
}

/** "query 4 “fox” → dog 0.41, the 0.2, ..." */
export function strongest(map, head, { side, index }, count) {
  const isQuery = side === "query";
  const [own, others] = isQuery ? [map.queryTokens, map.keyTokens] : [map.keyTokens, map.queryTokens];
  const [at, otherAt] = isQuery ? [map.queryAt, map.keyAt] : [map.keyAt, map.queryAt];
  const length = isQuery ? map.columns : map.rows;
  const cell = (i) => (isQuery ? [index, i] : [i, index]);
  const all = Array.from({ length }, (_, i) => ({ i, size: Math.abs(map.weight(head, ...cell(i))) }));
  const most = all.filter(({ size }) => size > 0).sort((a, b) => b.size - a.size).slice(0, count);
  const name = (tokens, i, positions) =>
    tokens ? `“${shorten(visible(tokens[i]), 24)}”` : label(null, i, positions);
  const position = at?.[index] ?? index;
  const told = most.map(({ i }) => `${name(others, i, otherAt)} ${map.says(head, ...cell(i))}`);
  const arrow = isQuery ? "→" : "←";
  return `${side} ${position} ${own ? name(own, index) : ""} ${arrow} ${told.join(", ") || "nothing"}`;
}
