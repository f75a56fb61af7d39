/** Every head of a layer as a tile, as large as the room allows. */

import { el } from "../draw/dom.js";
import { fullHeadName, score, words } from "../draw/format.js";
import { Heatmap } from "../draw/heatmap.js";
import { roving } from "../parts/roving.js";

const GAP = 18;
const CAPTION = 24;
const SMALLEST = 104;

export class HeadsView {
  constructor({ hover, enlarge, move }) {
    this.node = el("div.heads", { role: "group", "aria-label": "Heads of the layer" });
    Object.assign(this, { hover, enlarge, move, tiles: [] });
    this.roving = roving(this.node, "button.link");
  }

  draw(pane, scene, width, height) {
    const { map } = pane;
    const before = this.tiles.length;
    while (this.tiles.length > map.headCount) this.tiles.pop().node.remove();
    while (this.tiles.length < map.headCount) this.addTile(this.tiles.length);
    const measure = (w, h) => this.tiles[0].heatmap.measure(map, w, h);
    const { columns, tileWidth, tileHeight } = fit(map.headCount, measure, width, height);
    this.node.style.gridTemplateColumns = `repeat(${columns}, ${tileWidth}px)`;
    this.node.style.gap = `${GAP}px`;
    this.pane = pane;
    this.tiles.forEach((tile, head) => {
      const name = fullHeadName(map, head);
      tile.name.textContent = name;
      const value = pane.scoreOf(scene.score, head);
      const text = value === undefined ? "" : score(value);
      tile.score.textContent = text && tileWidth > 170 ? `${words(scene.score)} ${text}` : text;
      tile.score.title = scene.scoreTitle;
      const keys = map.keyHeads?.[head];
      tile.node.classList.toggle("grouped", keys !== undefined);
      tile.node.classList.toggle("first", keys !== undefined && keys !== map.keyHeads[head - 1]);
      tile.node.classList.toggle("odd", keys !== undefined && keys % 2 === 1);
      tile.heatmap.show(map, head, scene, tileWidth, tileHeight, name);
    });
    if (before !== this.tiles.length) this.roving.refresh();
  }

  addTile(head) {
    const heatmap = new Heatmap({
      axes: "auto",
      onHover: (place) => this.hover(place && { ...place, pane: this.pane, head }),
      onPick: () => this.enlarge(head),
      onWindow: this.move,
    });
    const name = el("button.link", { type: "button", onclick: () => this.enlarge(head) });
    name.title = "Enlarge this head";
    const value = el("span.score");
    const node = el("figure.tile", {}, el("figcaption", {}, name, value), heatmap.node);
    this.node.append(node);
    this.tiles.push({ node, heatmap, name, score: value });
  }

  crosshair(place) {
    for (const tile of this.tiles) tile.heatmap.crosshair(place);
  }

  heatmaps() {
    return this.tiles.map((tile) => tile.heatmap);
  }
}

/** The number of columns with which the cells come out largest; tiles then hug their maps. */
function fit(count, measure, width, height) {
  const at = (columns, tileHeight) => {
    const tileWidth = Math.floor((width - GAP * (columns - 1)) / columns);
    const layout = measure(tileWidth, tileHeight ?? tileWidth);
    const hugged = Math.min(tileWidth, Math.max(Math.ceil(layout.width), SMALLEST));
    return { columns, layout, tileWidth: hugged, tileHeight: tileHeight ?? tileWidth };
  };
  let best = null;
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const tileHeight = Math.floor((height - GAP * (rows - 1)) / rows) - CAPTION;
    const found = at(columns, tileHeight);
    if (best === null || found.layout.cell > best.layout.cell) best = found;
  }
  if (best && Math.max(best.layout.width, best.layout.height) >= SMALLEST) return best;
  return at(Math.max(1, Math.floor((width + GAP) / (SMALLEST + GAP)))); // scrolled
}
