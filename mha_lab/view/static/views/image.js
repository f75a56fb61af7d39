/**
 * Keys on the image whose patches they are: for one query, what every head of the layer looks at.
 * Click a patch to make it the query; tokens that are no patch (the class token) stand apart.
 */

import { positionOf } from "../data/lens.js";
import { level, tops } from "../draw/colouring.js";
import { el, sized } from "../draw/dom.js";
import { fullHeadName, label, score, words } from "../draw/format.js";
import { roving } from "../parts/roving.js";

const GAP = 18;
const CAPTION = 44;
const SMALLEST = 120;

export class ImageView {
  constructor({ hover, enlarge, pin }) {
    Object.assign(this, { hover, enlarge, pin, tiles: [], picture: new Image(), src: null });
    this.apart = el("div.chips", { role: "group", "aria-label": "Query" });
    this.rovingApart = roving(this.apart, "button");
    this.grid = el("div.heads");
    this.roving = roving(this.grid, "button.link");
    this.node = el("div.on-image", {}, this.apart, this.grid);
  }

  draw(pane, scene, width, height) {
    Object.assign(this, { pane, scene });
    const { map } = pane;
    const { src, grid } = map.image;
    if (src !== this.src) {
      this.src = src;
      this.picture.src = src;
      this.picture.decode().then(() => this.paint(), () => null);
    }
    this.query = Math.min(scene.query ?? 0, map.rows - 1);
    this.drawApart(map);
    while (this.tiles.length > map.headCount) this.tiles.pop().node.remove();
    while (this.tiles.length < map.headCount) this.addTile(this.tiles.length);
    const ratio = grid[1] / grid[0];
    const { columns, w, h } = fit(map.headCount, ratio, width, height - this.apart.offsetHeight - 8);
    this.grid.style.gridTemplateColumns = `repeat(${columns}, ${w}px)`;
    this.grid.style.gap = `${GAP}px`;
    Object.assign(this, { width: w, height: h });
    this.roving.refresh();
    this.paint();
  }

  /** Which token is the query: the class token and its like as buttons, a patch by its place. */
  drawApart(map) {
    const { first } = map.image;
    const isPatch = this.query >= first;
    const buttons = Array.from({ length: first }, (_, i) =>
      el("button.chip-button", {
        type: "button", "aria-pressed": String(this.query === i), onclick: () => this.pin({ query: i, keep: true }),
      }, label(map.queryTokens, i)),
    );
    const patch = el("span.patch", {}, isPatch ? `patch ${label(map.queryTokens, this.query)}` : "click a patch to choose it");
    this.apart.replaceChildren(el("span.caption", {}, "query"), ...buttons, patch);
    this.rovingApart.refresh();
  }

  addTile(head) {
    const name = el("button.link", { type: "button", title: "Enlarge this head", onclick: () => this.enlarge(head) });
    const value = el("span.score");
    const canvas = el("canvas", { role: "img" });
    const others = el("div.others");
    canvas.addEventListener("click", (event) => {
      const key = this.patchUnder(event);
      if (key !== null) this.pin({ query: positionOf(this.pane.map, "query", key), keep: true });
    });
    canvas.addEventListener("pointermove", (event) => {
      const key = this.patchUnder(event);
      this.hover(key === null ? null : { query: this.query, key, x: event.clientX, y: event.clientY, pane: this.pane, head });
    });
    canvas.addEventListener("pointerleave", () => this.hover(null));
    const node = el("figure.tile", {}, el("figcaption", {}, name, value), canvas, others);
    this.grid.append(node);
    this.tiles.push({ node, canvas, name, score: value, others });
  }

  patchUnder(event) {
    const box = event.target.getBoundingClientRect();
    const { grid: [rows, columns], first } = this.pane.map.image;
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
    const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
    return row >= 0 && row < rows && column >= 0 && column < columns ? first + row * columns + column : null;
  }

  paint() {
    const { pane, scene } = this;
    this.tiles.forEach((tile, head) => {
      const name = fullHeadName(pane.map, head);
      tile.name.textContent = name;
      const value = pane.scoreOf(scene.score, head);
      tile.score.textContent = value === undefined ? "" : `${this.width > 170 ? `${words(scene.score)} ` : ""}${score(value)}`;
      this.paintTile(tile, head, name);
    });
  }

  paintTile({ canvas, others }, head, name) {
    const { map } = this.pane;
    const { grid: [rows, columns], first } = map.image;
    const { scene, width, height, query } = this;
    const context = sized(canvas, width, height);
    context.fillStyle = scene.theme.blocked;
    context.fillRect(0, 0, width, height);
    if (this.picture.complete && this.picture.naturalWidth) {
      context.filter = "grayscale(0.85)";
      context.drawImage(this.picture, 0, 0, width, height);
      context.filter = "none";
    }
    const full = tops(map, head, scene.scale);
    const most = typeof full === "number" ? full : full[query];
    const table = map.isDifference ? scene.differences : scene.overlay;
    const [w, h] = [width / columns, height / rows];
    for (let i = 0; i < rows * columns; i += 1) {
      const place = level(map.weight(head, query, first + i), most, scene.scale.curve);
      if (place < 0) continue;
      const part = (place % 256) / 255;
      context.fillStyle = `rgb(${table[3 * place]} ${table[3 * place + 1]} ${table[3 * place + 2]} / ${0.12 + 0.78 * part})`;
      context.fillRect((i % columns) * w, Math.floor(i / columns) * h, w + 0.5, h + 0.5);
    }
    if (query >= first) {
      context.strokeStyle = scene.theme.accent;
      context.lineWidth = 2;
      const i = query - first;
      context.strokeRect((i % columns) * w + 1, Math.floor(i / columns) * h + 1, w - 2, h - 2);
    }
    canvas.setAttribute("aria-label", `${name}: keys on the image for query ${label(map.queryTokens, query)}`);
    others.textContent = Array.from(
      { length: first }, (_, i) => `${label(map.keyTokens, i)} ${map.says(head, query, i)}`,
    ).join(" · ");
  }

  crosshair() {}

  heatmaps() {
    return [];
  }
}

/** The number of columns with which the pictures come out largest. */
function fit(count, ratio, width, height) {
  let best = null;
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const room = (width - GAP * (columns - 1)) / columns;
    const w = Math.floor(Math.min(room, ratio * ((height - GAP * (rows - 1)) / rows - CAPTION), 480));
    if (!best || w > best.w) best = { columns, w, h: Math.round(w / ratio) };
  }
  if (best.w >= SMALLEST) return best;
  const columns = Math.max(1, Math.floor((width + GAP) / (SMALLEST + GAP)));
  const w = Math.floor((width - GAP * (columns - 1)) / columns);
  return { columns, w: Math.min(w, 240), h: Math.round(Math.min(w, 240) / ratio) };
}
