/** One map of one sample: what the server sent, as weights, and as colours. */

import { weight } from "./format.js";
import { LEVELS } from "./palette.js";

/** How many powers of ten the logarithmic scale shows; fainter weights have the lowest colour. */
export const DECADES = 4;

export class MapData {
  /** @param {ArrayBuffer} answer: header length (4 bytes), JSON header, codes (H, L, S). */
  constructor(answer) {
    const headerLength = new DataView(answer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(answer, 4, headerLength)));
    [this.headCount, this.rows, this.columns] = header.shape;
    this.kind = header.kind;
    this.step = header.step;
    this.wallTime = header.wall_time;
    this.samples = header.samples;
    this.heads = header.heads;
    this.size = header.size;
    this.scores = header.scores;
    this.queryTokens = header.query_tokens;
    this.keyTokens = header.key_tokens;
    this.weights = decode(answer, 4 + headerLength, header.coding);
    const { bits, levels, scale } = header.coding;
    this.digits = bits === 8 ? 2 : 4; // as many as are true of most weights
    this.faintest = scale / levels ** 2; // what every fainter weight was written as
    this.faint = scale * (1.5 / levels) ** 2;
    this.bytes = this.weights.byteLength;
    this.means = null;
    this.rowMaxima = new Map();
  }

  /** The weights (L, S) of one head, or of the mean of the heads. */
  of(head) {
    const size = this.rows * this.columns;
    if (head !== "mean") return this.weights.subarray(head * size, (head + 1) * size);
    if (this.means === null) {
      this.means = new Float32Array(size);
      for (let i = 0; i < this.weights.length; i += 1) {
        this.means[i % size] += this.weights[i] / this.headCount;
      }
    }
    return this.means;
  }

  weight(head, query, key) {
    return this.of(head)[query * this.columns + key];
  }

  /** A weight as text, with no more digits than were kept. */
  says(head, query, key) {
    const value = this.weight(head, query, key);
    const faint = head !== "mean" && value > 0 && value < 1.01 * this.faintest;
    return faint ? `< ${weight(this.faint, 2)}` : weight(value, this.digits);
  }

  /** The largest absolute weight of each row of a head. */
  maximaOfRows(head) {
    if (!this.rowMaxima.has(head)) {
      const weights = this.of(head);
      const maxima = new Float32Array(this.rows);
      for (let q = 0; q < this.rows; q += 1) {
        for (let k = 0; k < this.columns; k += 1) {
          const size = Math.abs(weights[q * this.columns + k]);
          if (size > maxima[q]) maxima[q] = size;
        }
      }
      this.rowMaxima.set(head, maxima);
    }
    return this.rowMaxima.get(head);
  }

  maximum(head) {
    return this.maximaOfRows(head).reduce((a, b) => Math.max(a, b), 0);
  }
}

function decode(answer, start, { bits, zero, levels, scale }) {
  const bytes = answer.slice(start);
  const codes = bits === 8 ? new Uint8Array(bytes) : new Uint16Array(bytes);
  const meaning = new Float32Array(2 ** bits);
  for (let code = 0; code < meaning.length; code += 1) {
    const x = (code - zero) / levels;
    meaning[code] = scale * x * Math.abs(x);
  }
  meaning[meaning.length - 1] = NaN;
  return Float32Array.from(codes, (code) => meaning[code]);
}

/**
 * Which colour each weight has.
 *
 * @param {object} scale: {relative: "row" | "head" | "global", log: boolean, largest: number}
 * @returns {Int16Array} (L, S): -1 is exactly 0, -2 not a number, otherwise a place in the table
 *     of colours, negative weights in its second half.
 */
export function levels(map, head, scale) {
  const weights = map.of(head);
  const result = new Int16Array(weights.length);
  const maxima = scale.relative === "row" ? map.maximaOfRows(head) : null;
  const shared = scale.relative === "head" ? map.maximum(head) : scale.largest;
  for (let i = 0; i < weights.length; i += 1) {
    const value = weights[i];
    const top = maxima ? maxima[Math.floor(i / map.columns)] : shared;
    result[i] = level(value, top, scale.log);
  }
  return result;
}

export function level(value, top, log) {
  if (Number.isNaN(value)) return -2;
  if (value === 0) return -1;
  const part = Math.abs(value) / (top || 1);
  const place = log ? 1 + Math.log10(part) / DECADES : part;
  const step = Math.round(Math.min(1, Math.max(0, place)) * (LEVELS - 1));
  return value < 0 ? step + LEVELS : step;
}

const NOT_A_NUMBER = [214, 40, 120, 255];

/** A picture of one head, one pixel a weight; weights of exactly 0 are left clear. */
export function picture(map, head, scale, table) {
  const image = new ImageData(map.columns || 1, map.rows || 1);
  const places = levels(map, head, scale);
  for (let i = 0; i < places.length; i += 1) {
    const place = places[i];
    if (place === -1) continue;
    if (place === -2) image.data.set(NOT_A_NUMBER, 4 * i);
    else {
      image.data[4 * i] = table[3 * place];
      image.data[4 * i + 1] = table[3 * place + 1];
      image.data[4 * i + 2] = table[3 * place + 2];
      image.data[4 * i + 3] = 255;
    }
  }
  return image;
}
