/** One map of one sample as weights, with what is known of their precision. */

import { weight } from "../draw/format.js";
import { robustTop } from "./robust.js";

export class MapData {
  /**
   * @param {object} header: shape (H, L, S), kind, step, coding, tokens, scores, ...
   * @param {ArrayBuffer} codes: (H, L, S).
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
    this.codes = codes;
    this.decoded = null;
    this.bytesOfCodes = null;
    this.bytes = (this.coding.bits === 8 ? 5 : 4) * this.headCount * this.rows * this.columns; // once they are weights
    this.means = null;
    this.rowMaxima = new Map();
    this.tops = new Map();
  }

  /** All weights (H, L, S), decoded when they are first looked at. */
  get weights() {
    if (this.decoded === null) {
      this.meaning = meanings(this.coding);
      const codes = this.coding.bits === 8 ? new Uint8Array(this.codes) : new Uint16Array(this.codes);
      this.decoded = decode(codes, this.meaning);
      this.codes = null;
      if (this.coding.bits === 8) this.bytesOfCodes = codes; // few enough values to colour by a table
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

  /** The codes (L, S) of one head, a byte each, with what they stand for; null where there are none. */
  codesOf(head) {
    if (this.weights && (this.bytesOfCodes === null || head === "mean")) return null;
    const size = this.rows * this.columns;
    return { codes: this.bytesOfCodes.subarray(head * size, (head + 1) * size), meaning: this.meaning };
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
    if (!this.tops.has(head)) this.tops.set(head, robustTop(this.of(head), this.rows, this.columns));
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

function decode(codes, meaning) {
  const weights = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i += 1) weights[i] = meaning[codes[i]];
  return weights;
}
