/** Which colour each weight has, and a map as a picture. */

import { LEVELS } from "./palette.js";

/** How many powers of ten the logarithmic scale shows; fainter weights have the lowest colour. */
export const DECADES = 4;

/** What a weight is full at: one number, or one a row. */
export function tops(map, head, scale) {
  if (scale.relative === "row") return map.maximaOfRows(head);
  if (scale.relative === "global") return map.isDifference ? largestDifference(map) : scale.largest;
  if (map.isDifference || !scale.maps.includes(map)) return map.top(head);
  // Maps that are compared share a head's scale.
  return Math.max(...scale.maps.map((one) => one.top(head === "mean" ? head : Math.min(head, one.headCount - 1))));
}

function largestDifference(map) {
  return Math.max(...Array.from({ length: map.headCount }, (_, head) => map.top(head)));
}

/** Where a weight lies on the way from nothing, 0, to the top, 1; beyond it, it is more. */
const PLACES = {
  linear: (part) => part,
  root: Math.sqrt,
  log: (part) => 1 + Math.log10(part) / DECADES,
};

/**
 * @param {number} top: what is full.
 * @returns -1 for exactly 0, -2 for not a number, otherwise a place in the table of colours,
 *     negative weights in its second half.
 */
export function level(value, top, curve) {
  if (value === 0) return -1;
  if (Number.isNaN(value)) return -2;
  return stepAt(PLACES[curve](Math.abs(value) / (top || 1)), value < 0);
}

function stepAt(place, isNegative) {
  const step = place >= 1 ? LEVELS - 1 : place > 0 ? (place * (LEVELS - 1) + 0.5) | 0 : 0;
  return isNegative ? step + LEVELS : step;
}

/**
 * The place of each weight (L, S) of a head.
 *
 * @param {object} scale: {relative: "row" | "head" | "global", curve, largest, maps}
 */
export function levels(map, head, scale) {
  const weights = map.of(head);
  const top = tops(map, head, scale);
  const result = new Int16Array(weights.length);
  const { columns } = map;
  const placeOf = PLACES[scale.curve];
  for (let q = 0, i = 0; q < map.rows; q += 1) {
    const own = (typeof top === "number" ? top : top[q]) || 1;
    for (let k = 0; k < columns; k += 1, i += 1) {
      const value = weights[i];
      // As level() does, without looking for the curve at each of 40,000 weights.
      if (value === 0) result[i] = -1;
      else if (value !== value) result[i] = -2;
      else result[i] = stepAt(placeOf(Math.abs(value) / own), value < 0);
    }
  }
  return result;
}

/** The part of the top that a place on the colour bar stands for, from 0 to 1. */
export function partAt(place, curve) {
  if (curve === "root") return place * place;
  return curve === "log" ? 10 ** (DECADES * (place - 1)) : place;
}

const NOT_A_NUMBER = [214, 40, 120];
const packed = new WeakMap(); // a table of colours to its pixels

/** A table's colours as pixels of an ImageData, a number each; the last two are those of no level. */
export function pixels(table) {
  if (!packed.has(table)) {
    const bytes = new Uint8Array(4 * (2 * LEVELS + 2));
    for (let i = 0; i < 2 * LEVELS; i += 1) bytes.set([...table.subarray(3 * i, 3 * i + 3), 255], 4 * i);
    bytes.set([...NOT_A_NUMBER, 255], 4 * 2 * LEVELS);
    packed.set(table, new Uint32Array(bytes.buffer)); // in this machine's order, as ImageData is
  }
  return packed.get(table);
}

export function pixelOf(colours, place) {
  return place === -1 ? 0 : colours[place < 0 ? 2 * LEVELS : place];
}

/**
 * The places of a head's weights (L, S), as few as need be: places[index[i]] is that of weight i,
 * as level() has it. Of maps with a byte a weight, 256 are looked up.
 */
export function places(map, head, scale) {
  const top = tops(map, head, scale);
  const known = typeof top === "number" ? map.codesOf(head) : null;
  if (known) return { index: known.codes, places: Int16Array.from(known.meaning, (value) => level(value, top, scale.curve)) };
  return { index: null, places: levels(map, head, scale) };
}

/** A picture of one head, one pixel a weight; weights of exactly 0 are left clear. */
export function picture(map, head, scale, table) {
  const image = new ImageData(map.columns || 1, map.rows || 1);
  const data = new Uint32Array(image.data.buffer);
  const colours = pixels(table);
  const { index, places: found } = places(map, head, scale);
  if (index) {
    const ofCode = Uint32Array.from(found, (place) => pixelOf(colours, place));
    for (let i = 0; i < index.length; i += 1) data[i] = ofCode[index[i]];
  } else for (let i = 0; i < found.length; i += 1) data[i] = pixelOf(colours, found[i]);
  return image;
}
