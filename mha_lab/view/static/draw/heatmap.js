/** One head's map: cells on a canvas, tokens on its axes, and a cross-hair that others can move. */

import { el, sized } from "./dom.js";
import { label, shorten } from "./format.js";
import { handle } from "./gestures.js";
import { LONGEST_LABEL, paint } from "./heatmap_paint.js";
import { textWidth } from "./measure.js";
import { stretched } from "./raster.js";

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
    this.canvas.setAttribute("aria-label", `${name}: ${map.rows} queries by ${map.columns} keys`);
    const layout = (this.layout = this.measure(map, width, height));
    const context = sized(this.canvas, layout.width, layout.height);
    this.canvas.dataset.cells = `${layout.left} ${layout.top} ${layout.wide}`; // where they lie, for scripts
    this.canvas.dataset.high = layout.high;
    paint(context, this, scene);
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
    const { wide, high } = stretched(map, cell);
    return {
      left, top, cell, wide, high, labelled,
      width: left + map.columns * wide + 1,
      height: top + map.rows * high + 1,
    };
  }

  /** The cell under the pointer, and where in it: fractions of a cell from the map's corner. */
  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const { left, top, wide, high } = this.layout;
    return {
      key: (event.clientX - box.left - left) / wide,
      query: (event.clientY - box.top - top) / high,
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
    const { left, top, wide, high } = this.layout;
    return { x: box.left + left + (key + 0.5) * wide, y: box.top + top + (query + 0.5) * high };
  }

  /** Highlight a row and a column, or nothing; places that this map lacks are ignored. */
  crosshair(place) {
    const here = place && this.map && place.query < this.map.rows && place.key < this.map.columns;
    for (const node of [this.row, this.column]) node.hidden = !here;
    for (const node of [this.rowChip, this.columnChip]) node.hidden = true;
    if (!here) return;
    const { left, top, wide, high, width, height } = this.layout;
    put(this.row, left, top + place.query * high, width - left - 1, Math.max(high, 2));
    put(this.column, left + place.key * wide, top, Math.max(wide, 2), height - top - 1);
    if (!this.layout.labelled) return;
    this.rowChip.textContent = shorten(label(this.map.queryTokens, place.query, this.map.queryAt), 40);
    this.rowChip.style.transform =
      `translate(${left - 3}px, ${top + (place.query + 0.5) * high}px) translate(-100%, -50%)`;
    this.columnChip.textContent = shorten(label(this.map.keyTokens, place.key, this.map.keyAt), 40);
    this.columnChip.style.transform =
      `translate(${left + (place.key + 0.5) * wide}px, ${top - 3}px) rotate(-90deg) translate(0, -50%)`;
    for (const chip of [this.rowChip, this.columnChip]) chip.hidden = chip.textContent === "";
  }

  /** The frame of what will be zoomed to, in cells: {query: [first, last], key: [first, last]}. */
  showBox(spans) {
    this.box.hidden = spans === null;
    if (spans === null) return;
    const { left, top, wide, high } = this.layout;
    const size = ([first, last], cell) => (last - first + 1) * cell;
    put(this.box, left + spans.key[0] * wide, top + spans.query[0] * high, size(spans.key, wide), size(spans.query, high));
  }
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
