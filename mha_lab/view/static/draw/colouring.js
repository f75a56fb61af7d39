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

/**
 * @param {object} scale: {relative: "row" | "head" | "global", curve, largest, maps}
 * @returns {Int16Array} (L, S): -1 is exactly 0, -2 not a number, otherwise a place in the table
 *     of colours, negative weights in its second half.
 */
export function levels(map, head, scale) {
  const weights = map.of(head);
  const top = tops(map, head, scale);
  const result = new Int16Array(weights.length);
  const { columns } = map;
  for (let q = 0, i = 0; q < map.rows; q += 1) {
    const own = typeof top === "number" ? top : top[q];
    for (let k = 0; k < columns; k += 1, i += 1) result[i] = level(weights[i], own, scale.curve);
  }
  return result;
}

export function level(value, top, curve) {
  if (value === 0) return -1;
  if (Number.isNaN(value)) return -2;
  const part = Math.abs(value) / (top || 1);
  const place = curve === "root" ? Math.sqrt(part) : curve === "log" ? 1 + Math.log10(part) / DECADES : part;
  const step = Math.round(Math.min(1, Math.max(0, place)) * (LEVELS - 1));
  return value < 0 ? step + LEVELS : step;
}

/** The part of the top that a place on the colour bar stands for, from 0 to 1. */
export function partAt(place, curve) {
  if (curve === "root") return place * place;
  return curve === "log" ? 10 ** (DECADES * (place - 1)) : place;
}

const NOT_A_NUMBER = [214, 40, 120, 255];

/** A picture of one head, one pixel a weight; weights of exactly 0 are left clear. */
export function picture(map, head, scale, table) {
  const image = new ImageData(map.columns || 1, map.rows || 1);
  const places = levels(map, head, scale);
  const { data } = image;
  for (let i = 0; i < places.length; i += 1) {
    const place = places[i];
    if (place === -1) continue;
    if (place === -2) data.set(NOT_A_NUMBER, 4 * i);
    else {
      data[4 * i] = table[3 * place];
      data[4 * i + 1] = table[3 * place + 1];
      data[4 * i + 2] = table[3 * place + 2];
      data[4 * i + 3] = 255;
    }
  }
  return image;
}
