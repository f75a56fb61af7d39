/**
 * From token to token: queries on the left, keys on the right, a line for each weight. Point at a
 * query to see what it attends to, at a key to see who attends to it; click a query to keep it.
 */

import { el, sized } from "../draw/dom.js";
import { label, shorten } from "../draw/format.js";
import { LEVELS, css } from "../draw/palette.js";
import { levels } from "../draw/colouring.js";

const FONT = '12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const FAINTEST = 0.04; // of the scale; fainter lines are left out while all are drawn
const FAINTEST_OF_ONE = 0.005; // and while those of one token are
const HEADING = 26;

/** The lowest colours are the page's own; a line must be seen. */
const seen = (place) => Math.floor(place / LEVELS) * LEVELS + Math.round(0.2 * LEVELS + 0.8 * (place % LEVELS));

export class LinesView {
  constructor({ hover, pin }) {
    this.canvas = el("canvas", { role: "img" });
    this.node = el("div.lines", {}, this.canvas);
    this.pointed = null;
    this.canvas.addEventListener("pointermove", (event) => this.point(event, hover));
    this.canvas.addEventListener("pointerleave", () => this.point(null, hover));
    this.canvas.addEventListener("click", () => {
      if (this.pointed?.side === "query") pin({ query: this.pointed.index });
    });
  }

  draw(pane, scene, width, height) {
    this.pane = pane;
    this.scene = scene;
    this.head = scene.headOf(pane.map);
    const { rows, columns } = pane.map;
    const most = Math.max(rows, columns, 1);
    this.step = Math.max(15, Math.min(30, (height - HEADING - 4) / most));
    this.width = Math.min(width, 900);
    this.bars = this.width >= 760 ? 110 : 0; // room for bars beside the keys
    this.height = HEADING + most * this.step + 4;
    this.places = levels(pane.map, this.head, scene.scale);
    this.canvas.setAttribute("aria-label", `lines from ${rows} queries to ${columns} keys`);
    this.paint();
  }

  paint() {
    const { map } = this.pane;
    const context = sized(this.canvas, this.width, this.height);
    const { theme } = this.scene;
    const gap = Math.min(150, this.width * 0.25);
    this.leftEdge = gap;
    this.rightEdge = this.width - gap - 60 - this.bars;
    context.font = "600 11px system-ui, sans-serif";
    context.fillStyle = theme.muted;
    context.textAlign = "right";
    context.fillText("query", this.leftEdge - 10, 14);
    context.textAlign = "left";
    context.fillText("key", this.rightEdge + 10, 14);
    const focus = this.focus();
    this.paintLines(context, focus);
    this.paintTokens(context, "query", map.queryTokens, map.rows, focus);
    this.paintTokens(context, "key", map.keyTokens, map.columns, focus);
  }

  /** What the lines are drawn for: what is pointed at, else the query that was clicked, else all. */
  focus() {
    if (this.pointed) return this.pointed;
    const { query } = this.scene;
    return query !== null && query < this.pane.map.rows ? { side: "query", index: query } : null;
  }

  middle(side, index) {
    const { rows, columns } = this.pane.map;
    const [own, most] = [side === "query" ? rows : columns, Math.max(rows, columns)];
    return HEADING + (index + 0.5 + (most - own) / 2) * this.step;
  }

  paintLines(context, focus) {
    const { map } = this.pane;
    const drawn = [];
    for (let i = 0; i < this.places.length; i += 1) {
      const place = this.places[i];
      if (place < 0) continue;
      const [query, key] = [Math.floor(i / map.columns), i % map.columns];
      if (focus && focus.index !== (focus.side === "query" ? query : key)) continue;
      const part = (place % LEVELS) / (LEVELS - 1);
      if (part >= (focus ? FAINTEST_OF_ONE : FAINTEST)) drawn.push({ query, key, part, place });
    }
    drawn.sort((a, b) => a.part - b.part);
    const bend = (this.rightEdge - this.leftEdge) * 0.42;
    for (const { query, key, part, place } of drawn) {
      const [from, to] = [this.middle("query", query), this.middle("key", key)];
      context.beginPath();
      context.moveTo(this.leftEdge, from);
      context.bezierCurveTo(
        this.leftEdge + bend, from, this.rightEdge - bend, to, this.rightEdge, to,
      );
      context.strokeStyle = css(this.scene.table, seen(place));
      context.globalAlpha = focus ? 0.3 + 0.7 * Math.sqrt(part) : 0.35 + 0.65 * part;
      context.lineWidth = (focus ? 1 : 0.6) + (focus ? 3.5 : 2.2) * part;
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  paintTokens(context, side, tokens, length, focus) {
    const { map } = this.pane;
    const { theme, table } = this.scene;
    const isQuery = side === "query";
    context.textBaseline = "middle";
    context.font = FONT;
    for (let index = 0; index < length; index += 1) {
      const y = this.middle(side, index);
      const text = shorten(label(tokens, index), 18);
      const own = focus && focus.side === side && focus.index === index;
      const across = focus && focus.side !== side;
      if (own) {
        const width = context.measureText(text).width + 12;
        context.fillStyle = theme.accent;
        const x = isQuery ? this.leftEdge - 4 - width : this.rightEdge + 4;
        context.beginPath();
        context.roundRect(x, y - this.step / 2 + 1, width, this.step - 2, 4);
        context.fill();
      }
      context.fillStyle = own ? theme.page : across || !focus ? theme.ink : theme.muted;
      context.textAlign = isQuery ? "right" : "left";
      const x = isQuery ? this.leftEdge - 10 : this.rightEdge + 10;
      if (across) {
        const [query, key] = isQuery ? [index, focus.index] : [focus.index, index];
        const place = this.places[query * map.columns + key];
        const part = place < 0 ? 0 : (place % LEVELS) / (LEVELS - 1);
        const value = map.weight(this.head, query, key);
        context.globalAlpha = 0.35 + 0.65 * Math.min(1, part * 3);
        context.fillText(text, x, y);
        context.globalAlpha = 1;
        if (Math.abs(value) >= 0.0005) this.paintValue(context, isQuery, y, value, place, table);
      } else context.fillText(text, x, y);
    }
  }

  paintValue(context, isQuery, y, value, place, table) {
    const { theme } = this.scene;
    if (place >= 0) {
      context.fillStyle = css(table, seen(place));
      const x = isQuery ? this.leftEdge - 5 : this.rightEdge;
      context.fillRect(x, y - this.step * 0.35, 5, this.step * 0.7);
      const length = (this.bars * (place % LEVELS)) / (LEVELS - 1);
      if (!isQuery) context.fillRect(this.width - 54 - this.bars, y - 3, length, 6);
    }
    if (isQuery) return;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.fillStyle = theme.muted;
    context.fillText(value.toFixed(3).replace("-", "−"), this.width - 4, y);
    context.font = FONT;
  }

  point(event, hover) {
    const before = JSON.stringify(this.pointed);
    this.pointed = null;
    if (event && this.pane) {
      const box = this.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const side = x < this.width / 2 ? "query" : "key";
      const { rows, columns } = this.pane.map;
      const length = side === "query" ? rows : columns;
      const index = Math.floor((y - this.middle(side, 0)) / this.step + 0.5);
      const middle = (this.leftEdge + this.rightEdge) / 2;
      const near = Math.abs(x - middle) > (this.rightEdge - this.leftEdge) / 4;
      if (near && index >= 0 && index < length) this.pointed = { side, index };
    }
    if (before === JSON.stringify(this.pointed)) return;
    if (this.pane) this.paint();
    hover(null);
  }

  crosshair() {}

  heatmaps() {
    return [];
  }
}
