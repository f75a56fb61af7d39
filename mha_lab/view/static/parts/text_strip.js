/**
 * The sample's own text. Point at a token, here or in a map, and the text shows by colour what that
 * token reads, or what reads it. Queries and keys of different texts stand in two lines.
 */

import { indexOf, positionOf } from "../data/lens.js";
import { level, tops } from "../draw/colouring.js";
import { el } from "../draw/dom.js";
import { visible } from "../draw/format.js";
import { css, inkOn } from "../draw/palette.js";

const BREAKS = /^[ĠĊ▁ ]|<\/w>$|^##/; // how tokenizers mark where words begin
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u; // no spaces between

export class TextStrip {
  constructor({ read, pin }) {
    Object.assign(this, { onRead: read, onPin: pin, direction: "query", focus: null, coloured: [] });
    this.queries = el("div.text", { dir: "auto" });
    this.keys = el("div.text", { dir: "auto" });
    this.way = el("button.way", { type: "button", onclick: () => this.turn() });
    this.node = el("div.strip-of-text", { role: "group", "aria-label": "Text of the sample" }, this.way, this.queries, this.keys);
    for (const [line, side] of [[this.queries, "query"], [this.keys, "key"]]) {
      line.addEventListener("pointerover", (event) => this.point(event, side));
      line.addEventListener("pointerleave", () => this.onRead(null));
      line.addEventListener("click", (event) => this.pick(event, side));
    }
  }

  /** Whether the pane has a text to show. */
  draw(pane, scene) {
    const { map } = pane;
    Object.assign(this, { pane, scene });
    this.isOne = map.kind !== "cross" && Boolean(map.queryTokens) && same(map.queryTokens, map.keyTokens);
    const signature = JSON.stringify([map.queryTokens, map.keyTokens]);
    if (signature !== this.signature) {
      this.signature = signature;
      this.queries.replaceChildren(...words(map.queryTokens ?? []));
      this.keys.replaceChildren(...(this.isOne ? [] : words(map.keyTokens ?? [])));
      this.spans = { query: [...this.queries.querySelectorAll("span")], key: [...(this.isOne ? this.queries : this.keys).querySelectorAll("span")] };
    }
    this.keys.hidden = this.isOne;
    this.queries.dataset.what = this.isOne ? "" : "queries";
    this.keys.dataset.what = "keys";
    this.way.hidden = !this.isOne;
    this.sayWay();
    this.read(null);
  }

  sayWay() {
    const reads = this.direction === "query";
    this.way.textContent = reads ? "reads" : "is read by";
    this.way.title = reads
      ? "The token under the pointer reads the coloured ones; click to turn it round"
      : "The coloured tokens read the one under the pointer; click to turn it round";
  }

  turn() {
    this.direction = this.direction === "query" ? "key" : "query";
    this.sayWay();
    this.read(null);
  }

  point(event, side) {
    const index = this.indexUnder(event, side);
    if (index < 0) return;
    const own = this.isOne ? this.direction : side;
    this.onRead({ side: own, index, pane: this.pane, head: this.headNow() });
  }

  pick(event, side) {
    const index = this.indexUnder(event, side);
    const own = this.isOne ? "query" : side;
    if (index >= 0 && own === "query") this.onPin({ query: positionOf(this.pane.map, "query", index) });
  }

  indexUnder(event, side) {
    return this.spans[this.isOne ? "query" : side].indexOf(event.target.closest("span"));
  }

  headNow() {
    return this.scene.head === "all" && !["map", "lines"].includes(this.scene.view) ? "mean" : this.scene.headOf(this.pane.map);
  }

  /** Colour the text by what is pointed at: {side, index, head}; else by the query that is kept. */
  read(focus) {
    const { map } = this.pane;
    const kept = indexOf(map, "query", this.scene.query);
    const now = focus ?? (kept >= 0 ? { side: "query", index: kept, head: this.headNow() } : null);
    for (const span of this.coloured) {
      span.style.background = span.style.color = "";
      span.classList.remove("focus");
    }
    this.coloured = [];
    if (!now || now.index >= (now.side === "query" ? map.rows : map.columns)) return;
    const head = now.head === "mean" || now.head === undefined ? "mean" : Math.min(now.head, map.headCount - 1);
    const full = tops(map, head, this.scene.scale);
    const table = map.isDifference ? this.scene.differences : this.scene.table;
    const across = now.side === "query" ? this.spans.key : this.spans.query;
    across.forEach((span, i) => {
      const [query, key] = now.side === "query" ? [now.index, i] : [i, now.index];
      const place = level(map.weight(head, query, key), typeof full === "number" ? full : full[query], this.scene.scale.curve);
      if (place < 0) return;
      span.style.background = css(table, place);
      span.style.color = inkOn(table, place);
      this.coloured.push(span);
    });
    const own = this.spans[now.side][now.index];
    if (!own) return;
    own.classList.add("focus");
    this.coloured.push(own);
  }
}

function same(first, second) {
  return Boolean(first && second) && first.length === second.length && first.every((token, i) => token === second[i]);
}

/** A span a token, with the spaces that its tokenizer marked, or else one between any two. */
function words(tokens) {
  const marked = tokens.some((token) => BREAKS.test(token));
  return tokens.flatMap((token, i) => {
    const bare = token.replace(/^[ĠĊ▁ ]+|^##(?=.)|<\/w>$/g, "");
    const before = i > 0 ? tokens[i - 1] : null;
    const glued = before !== null && WIDE.test(before.at(-1) ?? "") && WIDE.test(token[0] ?? "");
    const spaced = before !== null && !glued && (marked ? isBreak(token, before) : true);
    const span = el(token === "" ? "span.padding" : "span", {}, visible(bare) || (token === "" ? "" : "␣"));
    return spaced ? [" ", span] : [span];
  });
}

function isBreak(token, before) {
  if (/^##/.test(token)) return false;
  if (/^[ĠĊ▁ ]/.test(token) || /<\/w>$/.test(before)) return true;
  return !/^[\p{L}\p{N}]/u.test(token) ? /^[[<]/.test(token) : /[\]>]$/.test(before);
}
