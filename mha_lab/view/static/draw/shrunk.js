/**
 * A map with more weights than its box has pixels, shrunk: a pixel has the mean place, on the way
 * from nothing to full, of the weights under it, each by the part that is; blocked ones lie at
 * nothing. It is arithmetic of a tenth of a millisecond, where the browser takes ten times as long
 * to scale a picture; there may be seventy, sixteen times a second.
 */

import { places } from "./colouring.js";
import { LEVELS } from "./palette.js";

const NOT_A_NUMBER = 2 ** 30; // as a place: no mean that it is part of can be taken for another

/** Kept from head to head: memory that is asked for anew takes as long as what is done in it. */
let [before, means, values] = [new Float64Array(0), new Float64Array(0), new Float64Array(0)];
let known = {};

/**
 * The mean of along() of the weights under each of width × height pixels, which are no more than
 * the weights; valid until this is asked again.
 */
export function shrunk(map, head, scale, width, height) {
  const { index, places: found } = places(map, head, scale);
  const [{ rows, columns }, ends] = [map, endsOf(map.columns, width)];
  before = atLeast(before, columns + 2); // the sum of what lies before each weight of a row
  values = atLeast(values, found.length);
  means = atLeast(means, (height + 1) * width).fill(0);
  for (let i = 0; i < found.length; i += 1) values[i] = along(found[i]);
  for (let q = 0, i = 0; q < rows; q += 1) {
    let sum = 0;
    for (let k = 1; k <= columns; k += 1, i += 1) {
      sum += values[index === null ? i : index[i]];
      before[k] = sum;
    }
    before[columns + 1] = sum;
    const y = Math.floor((q * height) / rows);
    const next = Math.max(0, ((q + 1) * height) / rows - y - 1); // the part that lies in the next row of pixels
    const [here, there] = [((height / rows - next) * width) / columns, (next * width) / columns];
    for (let x = 0, at = y * width, last = 0; x < width; x += 1, at += 1) {
      const k = ends.whole[x];
      const now = before[k] + ends.part[x] * (before[k + 1] - before[k]);
      means[at] += (now - last) * here;
      if (there > 0) means[at + width] += (now - last) * there;
      last = now;
    }
  }
  return means;
}

function atLeast(array, length) {
  return array.length < length ? new Float64Array(length) : array;
}

/** Where each of m pixels ends among n weights: after so many whole ones, and a part of the next. */
function endsOf(n, m) {
  if (known.n === n && known.m === m) return known;
  const [whole, part] = [new Uint32Array(m), new Float64Array(m)];
  for (let x = 0; x < m; x += 1) {
    whole[x] = Math.floor(((x + 1) * n) / m);
    part[x] = ((x + 1) * n) / m - whole[x];
  }
  known = { n, m, whole, part };
  return known;
}

/** A place as a number that means can be taken of: 0 for nothing, else 1 and more, or -1 and less. */
function along(place) {
  if (place < 0) return place === -1 ? 0 : NOT_A_NUMBER;
  return place < LEVELS ? place + 1 : LEVELS - 1 - place;
}

/** The way back; what is faint has the lowest colour, and only nothing has none. */
export function placeAt(mean) {
  if (mean === 0) return -1;
  const size = Math.abs(mean);
  if (size > 2 * LEVELS) return -2;
  const place = size < 1.5 ? 0 : (size - 0.5) | 0;
  return mean < 0 ? place + LEVELS : place;
}
