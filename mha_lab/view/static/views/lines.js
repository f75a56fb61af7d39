/**
 * From token to token: queries on the left, keys on the right, a line for each weight. Point at a
 * query to see what it attends to, at a key to see who attends to it; click a query to keep it.
 * Several heads may lie over each other, each in a colour of its own.
 */

import { indexOf, positionOf } from "../data/lens.js";
import { el, sized } from "../draw/dom.js";
import { headName } from "../draw/format.js";
import { gather, strongest } from "../draw/lines.js";
import { paintLines, paintTokens } from "../draw/lines_canvas.js";
import { LinesTools } from "../parts/lines_tools.js";

const HEADING = 26;
const SMALLEST_STEP = 15;
const NAMED = 5; // keys that are told of the chosen query

export class LinesView {
  constructor(actions) {
    this.actions = actions;
    this.canvas = el("canvas", { role: "img" });
    this.sizer = el("div.sizer", {}, this.canvas);
    this.tools = new LinesTools(actions);
    this.told = el("p.told", { "aria-live": "polite", dir: "auto" });
    this.scroller = el("div.scroller", { tabindex: 0, role: "group", "aria-label": "Lines" }, this.sizer);
    this.node = el("div.lines", {}, this.tools.node, this.told, this.scroller);
    this.pointed = null;
    this.followed = null;
    this.scroller.addEventListener("scroll", () => this.paint());
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", () => {
      if (this.pointed?.side !== "query") return;
      this.actions.pin({ query: positionOf(this.pane.map, "query", this.pointed.index) });
    });
  }

  draw(pane, scene, width, height) {
    Object.assign(this, { pane, scene });
    const { map } = pane;
    const { rows, columns } = map;
    const only = scene.headOf(map);
    const over = scene.over.filter((head) => head < map.headCount);
    this.heads = over.length ? over : [only];
    this.tools.draw(pane, scene, this.heads);
    const above = this.tools.node.offsetHeight + 30;
    const room = Math.max(160, height - above);
    const most = Math.max(rows, columns, 1);
    this.step = Math.max(SMALLEST_STEP, Math.min(30, (room - HEADING - 4) / most));
    this.width = Math.min(width - 12, 900);
    this.bars = this.width >= 760 && this.heads.length === 1 ? 110 : 0; // room for bars beside the keys
    this.height = HEADING + most * this.step + 4;
    this.shownHeight = Math.min(room, this.height);
    this.scroller.style.height = `${this.shownHeight}px`;
    this.sizer.style.height = `${this.height}px`;
    const gap = Math.min(150, this.width * 0.25);
    this.leftEdge = gap;
    this.rightEdge = this.width - gap - 60 - this.bars;
    this.lines = this.heads.map((head) => gather(map, head, scene));
    const names = this.heads.map((head) => headName(map, head)).join(", ");
    this.canvas.setAttribute("aria-label", `${names}: lines from ${rows} queries to ${columns} keys`);
    this.follow();
    this.paint();
  }

  /** Scroll to the query that was chosen elsewhere, and say its name. */
  follow() {
    const index = indexOf(this.pane.map, "query", this.scene.query);
    if (index >= 0 && this.followed !== this.scene.query) {
      this.scroller.scrollTop = this.middle("query", index) - this.shownHeight / 2;
    }
    this.followed = this.scene.query;
    this.tell(this.focus());
  }

  /** What the lines are drawn for: what is pointed at, else the query that was chosen, else all. */
  focus() {
    if (this.pointed) return this.pointed;
    const index = indexOf(this.pane.map, "query", this.scene.query);
    return index >= 0 ? { side: "query", index } : null;
  }

  tell(focus) {
    const { map } = this.pane;
    this.told.textContent = focus
      ? strongest(map, this.heads[0], focus, NAMED)
      : "Point at a token, or click a query to keep it.";
  }

  middle(side, index) {
    const { rows, columns } = this.pane.map;
    const [own, most] = [side === "query" ? rows : columns, Math.max(rows, columns)];
    return HEADING + (index + 0.5 + (most - own) / 2) * this.step;
  }

  paint() {
    if (!this.pane) return;
    const context = sized(this.canvas, this.width, this.shownHeight);
    const offset = this.scroller.scrollTop;
    const focus = this.focus();
    context.save();
    context.translate(0, -offset);
    const inSight = { first: offset - 20, last: offset + this.shownHeight + 20 };
    paintLines(context, this, focus, inSight);
    paintTokens(context, this, focus, inSight);
    context.restore();
    const { theme } = this.scene;
    context.fillStyle = theme.page;
    context.fillRect(0, 0, this.width, HEADING - 6);
    context.font = "600 11px system-ui, sans-serif";
    context.fillStyle = theme.muted;
    context.textBaseline = "alphabetic";
    context.textAlign = "right";
    context.fillText("query", this.leftEdge - 10, 14);
    context.textAlign = "left";
    context.fillText("key", this.rightEdge + 10, 14);
  }

  point(event) {
    const before = JSON.stringify(this.pointed);
    this.pointed = null;
    if (event && this.pane) {
      const box = this.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top + this.scroller.scrollTop];
      const side = x < this.width / 2 ? "query" : "key";
      const { rows, columns } = this.pane.map;
      const length = side === "query" ? rows : columns;
      const index = Math.floor((y - this.middle(side, 0)) / this.step + 0.5);
      const middle = (this.leftEdge + this.rightEdge) / 2;
      const near = Math.abs(x - middle) > (this.rightEdge - this.leftEdge) / 4;
      if (near && index >= 0 && index < length) this.pointed = { side, index };
    }
    if (before === JSON.stringify(this.pointed) || !this.pane) return;
    this.paint();
    this.tell(this.focus());
    this.actions.hover(null);
    this.actions.read(this.pointed && { ...this.pointed, pane: this.pane, head: this.heads[0] });
  }

  crosshair() {}

  heatmaps() {
    return [];
  }
}
