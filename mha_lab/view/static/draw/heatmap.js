/** One head's map: cells on a canvas, tokens on its axes, and a cross-hair that others can move. */

import { indexOf } from "../data/lens.js";
import { level, picture, tops } from "./colouring.js";
import { el, sized } from "./dom.js";
import { label, shorten } from "./format.js";
import { handle } from "./gestures.js";
import { LABEL_FONT, textWidth } from "./measure.js";
import { inkOn } from "./palette.js";
import { drawPicture } from "./raster.js";

const LONGEST_LABEL = 18;
const LARGEST_CELL = 56;

export class Heatmap {
  /**
   * @param {object} options: axes "full" (always), "auto" (where each token has room) or "none";
   *     values: write the weights into cells that are large enough;
   *     onHover(place | null), place = {query, key, x, y}; onPick(place);
   *     onWindow(window): after zooming or moving; see window.js.
   */
  constructor({ axes = "full", values = false, onHover = () => {}, onPick = null, onWindow = () => {} } = {}) {
    Object.assign(this, { axes, values, onHover, onPick, onWindow });
    this.canvas = el("canvas", { role: "img" });
    this.row = el("div.band");
    this.column = el("div.band");
    this.rowChip = el("div.chip", { dir: "auto" });
    this.columnChip = el("div.chip.of-column", { dir: "auto" });
    this.box = el("div.cutout", { hidden: true });
    this.node = el(
      "div.heatmap", {}, this.canvas, this.row, this.column, this.rowChip, this.columnChip, this.box,
    );
    if (onPick) this.canvas.classList.add("pickable");
    handle(this);
  }

  /** Draw a head into a box of at most this size. */
  show(map, head, scene, width, height, name) {
    Object.assign(this, { map, head });
    const { scale, table, differences, theme } = scene;
    const own = map.isDifference ? differences : table;
    this.canvas.setAttribute("aria-label", `${name}: ${map.rows} queries by ${map.columns} keys`);
    const layout = (this.layout = this.measure(map, width, height));
    const context = sized(this.canvas, layout.width, layout.height);
    const { left, top, cell } = layout;
    this.canvas.dataset.cells = `${left} ${top} ${cell}`; // where they lie, for scripts
    const [w, h] = [map.columns * cell, map.rows * cell];
    context.fillStyle = theme.blocked;
    context.fillRect(left, top, w, h);
    drawPicture(context, picture(map, head, scale, own), left, top, w, h);
    if (cell >= 9) this.drawLines(context, theme.page);
    context.strokeStyle = theme.rule;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, top + 0.5, Math.max(0, w - 1), Math.max(0, h - 1));
    if (this.values && cell >= 30) this.drawValues(context, scale, own, theme);
    this.drawMarks(context, scene);
    if (layout.labelled) this.drawLabels(context, scene);
    this.crosshair(null);
  }

  measure(map, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const bare = Math.min(width / map.columns, height / map.rows);
    const labelled = this.axes === "full" || (this.axes === "auto" && bare >= 15);
    const left = labelled ? Math.min(longest(map.queryTokens, map.rows), width * 0.3) + 8 : 0;
    const top = labelled ? Math.min(longest(map.keyTokens, map.columns), height * 0.3) + 8 : 0;
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
        const text = Number.isNaN(value) ? "nan" : value.toFixed(2).replace(/^(-?)0\./, "$1.").replace("-", "−");
        context.fillText(text, left + (k + 0.5) * cell, top + (q + 0.5) * cell);
      }
    }
  }

  /** Beside the axes: the query that is followed, and tokens that were searched for. */
  drawMarks(context, { theme, find, query }) {
    const { left, top, cell } = this.layout;
    const { map } = this;
    context.fillStyle = theme.accent;
    const thickness = Math.max(2, cell);
    const followed = indexOf(map, "query", query);
    if (followed >= 0) context.fillRect(Math.max(0, left - 4), top + followed * cell, 3, thickness);
    if (!find) return;
    const [w, h] = [map.columns * cell, map.rows * cell];
    context.globalAlpha = 0.35;
    for (let q = 0; q < map.rows; q += 1) {
      if (found(map.queryTokens, q, find)) context.fillRect(left, top + (q + 0.5) * cell - 0.75, w, 1.5);
    }
    for (let k = 0; k < map.columns; k += 1) {
      if (found(map.keyTokens, k, find)) context.fillRect(left + (k + 0.5) * cell - 0.75, top, 1.5, h);
    }
    context.globalAlpha = 1;
  }

  drawLabels(context, { theme, find }) {
    const { left, top, cell } = this.layout;
    const { map } = this;
    const every = Math.ceil(12 / cell);
    const shown = (tokens, i) => {
      const hit = find && found(tokens, i, find);
      context.fillStyle = hit ? theme.accent : theme.muted;
      return hit || i % every === 0;
    };
    context.font = LABEL_FONT;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let q = 0; q < map.rows; q += 1) {
      if (!shown(map.queryTokens, q)) continue;
      context.fillText(shorten(label(map.queryTokens, q, map.queryAt), LONGEST_LABEL), left - 6, top + (q + 0.5) * cell, left - 6);
    }
    if (left >= 44 && top >= 32) {
      context.fillStyle = theme.muted;
      context.font = "italic 10px system-ui, sans-serif";
      context.fillText("key →", left - 6, top - 22);
      context.fillText("query ↓", left - 6, top - 9);
      context.font = LABEL_FONT;
    }
    context.textAlign = "left";
    for (let k = 0; k < map.columns; k += 1) {
      if (!shown(map.keyTokens, k)) continue;
      context.save();
      context.translate(left + (k + 0.5) * cell, top - 6);
      context.rotate(-Math.PI / 2);
      context.fillText(shorten(label(map.keyTokens, k, map.keyAt), LONGEST_LABEL), 0, 0, top - 6);
      context.restore();
    }
  }

  /** The cell under the pointer, and where in it: fractions of a cell from the map's corner. */
  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const { left, top, cell } = this.layout;
    return {
      key: (event.clientX - box.left - left) / cell,
      query: (event.clientY - box.top - top) / cell,
    };
  }

  placeOf(event) {
    if (!this.map) return null;
    const at = this.cellAt(event);
    const [key, query] = [Math.floor(at.key), Math.floor(at.query)];
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
    put(this.row, left, top + place.query * cell, width - left - 1, thickness);
    put(this.column, left + place.key * cell, top, thickness, height - top - 1);
    if (!this.layout.labelled) return;
    this.rowChip.textContent = shorten(label(this.map.queryTokens, place.query, this.map.queryAt), 40);
    this.rowChip.style.transform =
      `translate(${left - 3}px, ${top + (place.query + 0.5) * cell}px) translate(-100%, -50%)`;
    this.columnChip.textContent = shorten(label(this.map.keyTokens, place.key, this.map.keyAt), 40);
    this.columnChip.style.transform =
      `translate(${left + (place.key + 0.5) * cell}px, ${top - 3}px) rotate(-90deg) translate(0, -50%)`;
    for (const chip of [this.rowChip, this.columnChip]) chip.hidden = chip.textContent === "";
  }

  /** The frame of what will be zoomed to, in cells: {query: [first, last], key: [first, last]}. */
  showBox(spans) {
    this.box.hidden = spans === null;
    if (spans === null) return;
    const { left, top, cell } = this.layout;
    const size = ([first, last]) => (last - first + 1) * cell;
    put(this.box, left + spans.key[0] * cell, top + spans.query[0] * cell, size(spans.key), size(spans.query));
  }
}

/** Whether a token holds what is searched for. */
export function found(tokens, index, find) {
  return Boolean(tokens && find && tokens[index].toLowerCase().includes(find));
}

function put(node, x, y, width, height) {
  node.style.transform = `translate(${x}px, ${y}px)`;
  node.style.width = `${width}px`;
  node.style.height = `${height}px`;
}

/** The width of the longest label that may be drawn. */
function longest(tokens, length) {
  let width = 0;
  for (let i = 0; i < length; i += 1) {
    width = Math.max(width, textWidth(shorten(label(tokens, i), LONGEST_LABEL)));
  }
  return Math.ceil(width);
}
