/** One head's map: cells on a canvas, tokens on its axes, and a cross-hair that others can move. */

import { el, sized } from "./dom.js";
import { label, shorten } from "./format.js";
import { level, picture, tops } from "./colouring.js";
import { css, inkOn } from "./palette.js";

const LABEL_FONT = '11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const LONGEST_LABEL = 18;
const LARGEST_CELL = 56;
const scratch = document.createElement("canvas");
const enlarged = document.createElement("canvas");

export class Heatmap {
  /**
   * @param {object} options: axes "full" (always), "auto" (where each token has room) or "none";
   *     values: write the weights into cells that are large enough;
   *     onHover(place | null), place = {query, key, x, y}; onPick(place).
   */
  constructor({ axes = "full", values = false, onHover = () => {}, onPick = null } = {}) {
    Object.assign(this, { axes, values, onHover, onPick });
    this.canvas = el("canvas", { role: "img" });
    this.row = el("div.band");
    this.column = el("div.band");
    this.rowChip = el("div.chip");
    this.columnChip = el("div.chip");
    this.node = el(
      "div.heatmap", {}, this.canvas, this.row, this.column, this.rowChip, this.columnChip,
    );
    this.canvas.addEventListener("pointermove", (event) => this.onHover(this.placeOf(event)));
    this.canvas.addEventListener("pointerleave", () => this.onHover(null));
    if (onPick) {
      this.canvas.classList.add("pickable");
      this.canvas.addEventListener("click", (event) => this.onPick(this.placeOf(event)));
    }
  }

  /** Draw a head into a box of at most this size. */
  show(map, head, { scale, table, theme }, width, height, name) {
    this.map = map;
    this.head = head;
    this.canvas.setAttribute("aria-label", `${name}: ${map.rows} queries by ${map.columns} keys`);
    const layout = (this.layout = this.measure(map, width, height));
    const context = sized(this.canvas, layout.width, layout.height);
    const { left, top, cell } = layout;
    this.canvas.dataset.cells = `${left} ${top} ${cell}`; // where they lie, for scripts
    const [w, h] = [map.columns * cell, map.rows * cell];
    context.fillStyle = theme.blocked;
    context.fillRect(left, top, w, h);
    drawPicture(context, picture(map, head, scale, table), left, top, w, h);
    if (cell >= 9) this.drawLines(context, theme.page);
    context.strokeStyle = theme.rule;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, top + 0.5, Math.max(0, w - 1), Math.max(0, h - 1));
    if (this.values && cell >= 30) this.drawValues(context, scale, table, theme);
    if (layout.labelled) this.drawLabels(context, theme);
    this.crosshair(null);
  }

  measure(map, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const bare = Math.min(width / map.columns, height / map.rows);
    const labelled = this.axes === "full" || (this.axes === "auto" && bare >= 15);
    const left = labelled ? longest(map.queryTokens, map.rows) + 8 : 0;
    const top = labelled ? longest(map.keyTokens, map.columns) + 8 : 0;
    let cell = Math.min((width - left - 1) / map.columns, (height - top - 1) / map.rows);
    cell = Math.min(LARGEST_CELL, Math.max(cell, 0.25));
    if (cell >= 9) cell = Math.floor(cell * ratio) / ratio; // whole pixels, for lines between
    return {
      left, top, cell, labelled,
      width: left + map.columns * cell + 1,
      height: top + map.rows * cell + 1,
    };
  }

  drawLines(context, colour) {
    const { left, top, cell } = this.layout;
    const [w, h] = [this.map.columns * cell, this.map.rows * cell];
    context.fillStyle = colour;
    context.globalAlpha = 0.3;
    for (let k = 1; k < this.map.columns; k += 1) context.fillRect(left + k * cell - 0.5, top, 1, h);
    for (let q = 1; q < this.map.rows; q += 1) context.fillRect(left, top + q * cell - 0.5, w, 1);
    context.globalAlpha = 1;
  }

  drawValues(context, scale, table, theme) {
    const { left, top, cell } = this.layout;
    const full = tops(this.map, this.head, scale);
    context.font = `${Math.min(13, cell * 0.33)}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let q = 0; q < this.map.rows; q += 1) {
      for (let k = 0; k < this.map.columns; k += 1) {
        const value = this.map.weight(this.head, q, k);
        const place = level(value, typeof full === "number" ? full : full[q], scale.curve);
        if (place === -1 || Math.abs(value) < 0.005) continue;
        context.fillStyle = place < 0 ? theme.page : inkOn(table, place);
        const text = Number.isNaN(value) ? "nan" : value.toFixed(2).replace(/^(-?)0\./, "$1.");
        context.fillText(text, left + (k + 0.5) * cell, top + (q + 0.5) * cell);
      }
    }
  }

  drawLabels(context, theme) {
    const { left, top, cell } = this.layout;
    const every = Math.ceil(12 / cell);
    context.font = LABEL_FONT;
    context.fillStyle = theme.muted;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let q = 0; q < this.map.rows; q += every) {
      const text = shorten(label(this.map.queryTokens, q), LONGEST_LABEL);
      context.fillText(text, left - 6, top + (q + 0.5) * cell);
    }
    if (left >= 44 && top >= 32) {
      context.font = "italic 10px system-ui, sans-serif";
      context.fillText("key →", left - 6, top - 22);
      context.fillText("query ↓", left - 6, top - 9);
      context.font = LABEL_FONT;
    }
    context.textAlign = "left";
    for (let k = 0; k < this.map.columns; k += every) {
      context.save();
      context.translate(left + (k + 0.5) * cell, top - 6);
      context.rotate(-Math.PI / 2);
      context.fillText(shorten(label(this.map.keyTokens, k), LONGEST_LABEL), 0, 0);
      context.restore();
    }
  }

  placeOf(event) {
    if (!this.map) return null;
    const box = this.canvas.getBoundingClientRect();
    const { left, top, cell } = this.layout;
    const key = Math.floor((event.clientX - box.left - left) / cell);
    const query = Math.floor((event.clientY - box.top - top) / cell);
    const inside = key >= 0 && key < this.map.columns && query >= 0 && query < this.map.rows;
    return inside ? { query, key, x: event.clientX, y: event.clientY } : null;
  }

  /** Where a cell's middle lies on the page. */
  pointOf(query, key) {
    const box = this.canvas.getBoundingClientRect();
    const { left, top, cell } = this.layout;
    return { x: box.left + left + (key + 0.5) * cell, y: box.top + top + (query + 0.5) * cell };
  }

  /** Highlight a row and a column, or nothing; places that this map lacks are ignored. */
  crosshair(place) {
    const here = place && this.map && place.query < this.map.rows && place.key < this.map.columns;
    for (const node of [this.row, this.column]) node.hidden = !here;
    for (const node of [this.rowChip, this.columnChip]) node.hidden = true;
    if (!here) return;
    const { left, top, cell, width, height } = this.layout;
    const thickness = Math.max(cell, 2);
    place2(this.row, left, top + place.query * cell, width - left - 1, thickness);
    place2(this.column, left + place.key * cell, top, thickness, height - top - 1);
    if (!this.layout.labelled) return;
    this.rowChip.textContent = shorten(label(this.map.queryTokens, place.query), 40);
    this.rowChip.style.transform =
      `translate(${left - 3}px, ${top + (place.query + 0.5) * cell}px) translate(-100%, -50%)`;
    this.columnChip.textContent = shorten(label(this.map.keyTokens, place.key), 40);
    this.columnChip.style.transform =
      `translate(${left + (place.key + 0.5) * cell}px, ${top - 3}px) rotate(-90deg) translate(0, -50%)`;
    for (const chip of [this.rowChip, this.columnChip]) chip.hidden = chip.textContent === "";
  }
}

/** Draw a picture into a box, its pixels sharp: enlarged by a whole number, then made to fit. */
export function drawPicture(context, image, x, y, width, height) {
  scratch.width = image.width;
  scratch.height = image.height;
  scratch.getContext("2d").putImageData(image, 0, 0);
  const ratio = window.devicePixelRatio || 1;
  const times = Math.max(1, Math.ceil((width * ratio) / image.width - 0.001));
  enlarged.width = image.width * times;
  enlarged.height = image.height * times;
  const large = enlarged.getContext("2d");
  large.imageSmoothingEnabled = false;
  large.drawImage(scratch, 0, 0, enlarged.width, enlarged.height);
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = "high";
  context.drawImage(enlarged, x, y, width, height);
}

function place2(node, x, y, width, height) {
  node.style.transform = `translate(${x}px, ${y}px)`;
  node.style.width = `${width}px`;
  node.style.height = `${height}px`;
}

/** The width of the longest label that will be drawn. */
function longest(tokens, length) {
  const context = scratch.getContext("2d");
  context.font = LABEL_FONT;
  let width = 0;
  for (let i = 0; i < length; i += 1) {
    const text = shorten(label(tokens, i), LONGEST_LABEL);
    width = Math.max(width, context.measureText(text).width);
  }
  return Math.ceil(width);
}

/** The colours of the page that canvases need, read from the style sheet. */
export function readTheme(node) {
  const style = getComputedStyle(node);
  const names = ["page", "panel", "ink", "muted", "rule", "blocked", "accent"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** A bar from the lowest to the highest colour. */
export function drawLegend(canvas, table, width, height) {
  const context = sized(canvas, width, height);
  for (let x = 0; x < width; x += 1) {
    context.fillStyle = css(table, Math.round((255 * x) / (width - 1)));
    context.fillRect(x, 0, 1.5, height);
  }
}

