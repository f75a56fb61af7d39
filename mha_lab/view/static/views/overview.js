/** Every head of every layer as a thumbnail, in the model's order or ranked by a score. */

import { look } from "../data/lens.js";
import { el } from "../draw/dom.js";
import { score, visible } from "../draw/format.js";
import { NARROWEST } from "../draw/raster.js";
import { drawThumbnail } from "../draw/thumbnail.js";
import { roving } from "../parts/roving.js";
import { makeTile } from "../parts/tile.js";

const [SMALLEST, LARGEST] = [36, 104];

export class OverviewView {
  constructor({ choose }) {
    this.choose = choose;
    this.node = el("div.overview", { role: "group", "aria-label": "Heads of all layers" });
    this.roving = roving(this.node, "button.thumbnail");
    this.tiles = [];
    this.signature = "";
    this.seen = new IntersectionObserver((entries) => this.onSeen(entries), {
      rootMargin: "200px",
    });
  }

  draw(pane, scene, width, height) {
    this.pane = pane;
    this.scene = scene;
    const wanted = pane.ranking(scene.score, scene.order);
    const most = Math.max(...wanted.map(({ head }) => head + 1), 1);
    const room = scene.order === "model" ? width / most - 16 : 92;
    this.size = Math.floor(Math.min(LARGEST, Math.max(SMALLEST, room)));
    this.node.style.setProperty("--size", `${this.size}px`);
    // As high as they will be, so that nothing moves when they are drawn.
    const { rows, columns } = pane.whole;
    this.node.style.setProperty("--shape", columns ? Math.max(1 / NARROWEST, Math.min(1, rows / columns)) : 0.5);
    this.node.style.setProperty("--layer", `${Math.ceil((most * (this.size + 14)) / width) * (this.size + 32)}px`);
    const signature = JSON.stringify([
      pane.run, scene.order, wanted.map(({ tag, head }) => [tag, head]),
    ]);
    if (signature !== this.signature) {
      this.signature = signature;
      this.build(wanted, scene.order === "model");
      this.expect(width, height);
    }
    for (const tile of this.tiles) {
      const value = pane.scoreOf(scene.score, tile.head, tile.tag);
      tile.score.textContent = value === undefined ? "" : score(value);
      const chosen = tile.tag === pane.entry.tag && tile.head === scene.head;
      tile.node.classList.toggle("chosen", chosen);
      tile.drawn = null;
    }
    this.paintAll(this.tiles.filter((tile) => tile.visible));
    this.roving.refresh(this.tiles.find((tile) => tile.node.classList.contains("chosen"))?.node);
  }

  /** Those that will be in sight, before the page is laid out: their maps come meanwhile. */
  expect(width, height) {
    const [across, down] = [Math.max(1, Math.floor(width / (this.size + 14))), this.size + 28];
    let [left, tag, column] = [height, null, 0];
    for (const tile of this.tiles) {
      if (tag !== null && tile.tag !== tag && this.scene.order === "model") [left, column] = [left - down - 22, 0];
      else if (column === across) [left, column] = [left - down, 0];
      if (left <= 0) break;
      [tile.visible, tag, column] = [true, tile.tag, column + 1];
    }
  }

  /** Tiles that were ranked otherwise are moved; the one that is in use stays so. */
  build(wanted, byLayer) {
    const isSame = !byLayer && this.rankedRun === this.pane.run;
    const known = new Map(isSame ? this.tiles.map((tile) => [`${tile.head} ${tile.tag}`, tile]) : []);
    const held = this.node.contains(document.activeElement) ? document.activeElement : null;
    this.rankedRun = byLayer ? null : this.pane.run;
    this.seen.disconnect();
    this.tiles = [];
    this.node.replaceChildren();
    this.node.classList.toggle("ranked", !byLayer);
    let [section, tag] = [null, null];
    this.tilesOf = new Map();
    wanted.forEach((one, place) => {
      if (section === null || (byLayer && one.tag !== tag)) {
        tag = one.tag;
        section = el("div.thumbnails");
        const name = this.pane.shortName(tag);
        if (byLayer) this.node.append(el("h3", { title: visible(tag) }, visible(name)));
        this.node.append(section);
      }
      const tile = known.get(`${one.head} ${one.tag}`) ?? makeTile(this.pane, one, { byLayer, choose: this.choose });
      if (!byLayer) tile.place.textContent = place + 1;
      section.append(tile.node);
      this.tiles.push(tile);
      this.watch(byLayer ? section : tile.node, tile);
    });
    if (held?.isConnected) held.focus({ preventScroll: true });
  }

  /** A layer comes into sight as a whole, a ranked tile by itself. */
  watch(node, tile) {
    if (this.tilesOf.has(node)) this.tilesOf.get(node).push(tile);
    else {
      this.tilesOf.set(node, [tile]);
      this.seen.observe(node);
    }
  }

  onSeen(entries) {
    const seen = [];
    for (const { target, isIntersecting } of entries) {
      const tiles = this.tilesOf.get(target) ?? [];
      for (const tile of tiles) tile.visible = isIntersecting;
      if (isIntersecting) seen.push(...tiles);
    }
    this.paintAll(seen);
  }

  /** The layers whose later steps will be drawn; the order of ranked ones is not known before. */
  tagsInSight() {
    const drawn = this.tiles.filter((tile) => tile.visible || this.scene.order !== "model");
    return new Set(drawn.map(({ tag }) => tag));
  }

  /** Paint what is in view; the maps of all its layers come in one answer. */
  paintAll(tiles) {
    const { pane } = this;
    const tags = new Set(tiles.map(({ tag }) => tag));
    const entries = pane.entries.filter(({ tag }) => tags.has(tag));
    if (entries.length > 1) {
      const steps = [...new Set(entries.map((entry) => pane.stepOf(entry)))];
      pane.source.mapsAhead(pane.run, entries, steps, pane.sample);
    }
    for (const tile of tiles) this.paint(tile);
  }

  async paint(tile) {
    const { pane, scene } = this;
    if (tile.drawn === scene) return;
    tile.drawn = scene;
    const entry = pane.entries.find((one) => one.tag === tile.tag);
    const step = pane.stepOf(entry);
    try {
      const map = look(await pane.source.map(pane.run, entry, step, pane.sample), { hide: scene.hide });
      if (scene !== this.scene || tile.head >= map.headCount) return;
      drawThumbnail(tile.canvas, map, tile.head, scene, this.size);
      tile.node.classList.remove("damaged");
    } catch (error) {
      tile.node.classList.add("damaged");
      tile.node.title = error.message;
    }
  }

  crosshair() {}

  heatmaps() {
    return [];
  }
}
