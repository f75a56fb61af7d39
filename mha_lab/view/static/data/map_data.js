/** One map of one sample as weights, with what is known of their precision. */

import { weight } from "../draw/format.js";
import { robustTop } from "./robust.js";

const ENOUGH_ROWS = 64; // of a map with twice as many, every other one tells what is large in it
let scratch = new Float32Array(0);

export class MapData {
  /**
   * @param {object} header: shape (H, L, S), kind, step, coding, tokens, scores, ...
   * @param {Uint8Array} codes: the bytes of the codes (H, L, S).
   */
  constructor(header, codes) {
    [this.headCount, this.rows, this.columns] = header.shape;
    this.kind = header.kind;
    this.step = header.step;
    this.wallTime = header.wall_time;
    this.samples = header.samples;
    this.heads = header.heads;
    this.keyHeads = header.key_heads ?? null;
    this.size = header.size;
    this.pool = header.pool ?? "mean";
    this.image = header.image ?? null;
    this.measure = header.measure ?? "weights";
    this.scores = header.scores;
    this.queryTokens = header.query_tokens;
    this.keyTokens = header.key_tokens;
    this.coding = header.coding;
    this.codes = this.coding.bits === 8 ? codes : new Uint16Array(codes.slice().buffer); // at an even place
    this.meaning = meanings(this.coding);
    this.decoded = null;
    this.bytes = codes.byteLength; // which are kept: the weights come on top
    this.means = null;
    this.rowMaxima = new Map();
    this.tops = new Map();
  }

  /** All weights (H, L, S), decoded when they are first looked at one by one. */
  get weights() {
    if (this.decoded === null) {
      this.decoded = decode(this.codes, this.meaning, new Float32Array(this.codes.length));
      this.bytes += this.decoded.byteLength;
      this.grown?.(this.decoded.byteLength); // whoever keeps this map counts its bytes
    }
    return this.decoded;
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

  /**
   * The codes (L, S) of one head, a byte each, with the 256 weights that they stand for: what is
   * made of every weight is then made 256 times. Null where a map has no such codes.
   */
  codesOf(head) {
    if (this.coding.bits !== 8 || head === "mean" || this.whole || this.isDifference) return null;
    const size = this.rows * this.columns;
    return { codes: this.codes.subarray(head * size, (head + 1) * size), meaning: this.meaning };
  }

  /** Some rows of a head, evenly spread, until this is asked again: enough to tell what is large in it. */
  someRows(head) {
    const known = this.decoded === null ? this.codesOf(head) : null;
    const every = Math.max(1, Math.floor(this.rows / ENOUGH_ROWS));
    const rows = Math.ceil(this.rows / every);
    if (scratch.length < rows * this.columns) scratch = new Float32Array(rows * this.columns);
    const all = known ? known.codes : this.of(head);
    for (let q = 0; q < rows; q += 1) {
      const row = all.subarray(q * every * this.columns, (q * every + 1) * this.columns);
      const own = scratch.subarray(q * this.columns, (q + 1) * this.columns);
      if (known) decode(row, known.meaning, own);
      else own.set(row);
    }
    return { weights: scratch, rows };
  }

  weight(head, query, key) {
    return this.of(head)[query * this.columns + key];
  }

  /** By how much a weight may differ from the model's own, as view/codec.py says. */
  errorOf(value) {
    const { levels, scale } = this.coding;
    return Math.sqrt(Math.abs(value) * scale) / levels + scale / levels ** 2;
  }

  /** How many digits of a weight are true; at least one. */
  digitsOf(value) {
    if (!(Math.abs(value) > 0)) return 1;
    const digits = Math.floor(-Math.log10((2 * this.errorOf(value)) / Math.abs(value))) + 1;
    return Math.min(6, Math.max(1, digits));
  }

  /** A weight as text, with no more digits than were kept. */
  says(head, query, key) {
    const value = this.weight(head, query, key);
    const { levels, scale } = this.coding;
    const isFaint = head !== "mean" && value > 0 && value < (1.01 * scale) / levels ** 2;
    return isFaint ? `< ${weight(scale * (1.5 / levels) ** 2, 2)}` : weight(value, this.digitsOf(value));
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

  /** What counts as a large weight of a head; colours are full there. */
  top(head) {
    if (!this.tops.has(head)) {
      const { weights, rows } = this.someRows(head);
      this.tops.set(head, robustTop(weights, rows, this.columns));
    }
    return this.tops.get(head);
  }

  /** Whether the map is smaller than the call's, as [rows, columns] of the call. */
  get pooledFrom() {
    const [rows, columns] = this.size ?? [this.rows, this.columns];
    return rows === this.rows && columns === this.columns ? null : [rows, columns];
  }
}

/** What each code stands for. */
function meanings({ bits, zero, levels, scale }) {
  const meaning = new Float32Array(2 ** bits);
  for (let code = 0; code < meaning.length; code += 1) {
    const x = (code - zero) / levels;
    meaning[code] = scale * x * Math.abs(x);
  }
  meaning[meaning.length - 1] = NaN;
  return meaning;
}

function decode(codes, meaning, weights) {
  for (let i = 0; i < codes.length; i += 1) weights[i] = meaning[codes[i]];
  return weights;
}
