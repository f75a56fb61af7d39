/** The middle of the page: one pane, or several side by side, each with the chosen view. */

import { ofPane } from "../data/state.js";
import { chooser, el } from "../draw/dom.js";
import { visible } from "../draw/format.js";
import { measureOf, subtitle } from "../draw/titles.js";
import { HeadsView } from "../views/heads.js";
import { ImageView } from "../views/image.js";
import { LinesView } from "../views/lines.js";
import { MapView } from "../views/map.js";
import { OverviewView } from "../views/overview.js";
import { TextStrip } from "./text_strip.js";

const VIEWS = { heads: HeadsView, map: MapView, lines: LinesView, overview: OverviewView, image: ImageView };
const EXAMPLE = `from mha_lab import AttentionMapLogger

trainer = Trainer(callbacks=[AttentionMapLogger()])
trainer.fit(model)`;

export class Stage {
  /** @param {object} on: hover(place) and read(focus): what lies under the pointer. */
  constructor(actions, { hover, read }) {
    Object.assign(this, { actions, hover, read, frames: [] });
    this.node = el("div.stage");
  }

  draw(scene) {
    if (this.empty) {
      this.empty.remove();
      this.empty = null;
    }
    this.node.dataset.panes = scene.shown.length;
    while (this.frames.length > scene.shown.length) this.frames.pop().node.remove();
    while (this.frames.length < scene.shown.length) this.addFrame();
    this.frames.forEach((frame, i) => this.drawFrame(frame, scene.shown[i], scene));
  }

  addFrame() {
    const frame = {
      badge: el("span.badge"),
      title: el("h2"),
      subtitle: el("span.subtitle"),
      layer: chooser("Layer of this pane", (tag) => this.actions.set({ [ofPane("layer", frame.pane.number)]: tag })),
      measure: el("p.measure"),
      message: el("p.message", { role: "status" }),
      body: el("div.body"),
      strip: new TextStrip({ read: this.read, pin: (place) => this.actions.follow(place) }),
      view: null,
      size: null, // of the body
      settled: false,
    };
    frame.heading = el("div.heading", {}, frame.badge, frame.title, frame.layer.node, frame.subtitle);
    // Asking a node for its size makes the browser lay the page out at once; this is told of it.
    new ResizeObserver(([{ contentRect }]) => this.resized(frame, contentRect)).observe(frame.body);
    frame.node = el("section.pane", {}, frame.heading, frame.measure, frame.message, frame.strip.node, frame.body);
    this.node.append(frame.node);
    this.frames.push(frame);
  }

  drawFrame(frame, pane, scene) {
    Object.assign(frame, { pane, scene, settled: false });
    const compared = scene.shown.length > 1;
    frame.badge.textContent = pane.key;
    frame.badge.dataset.pane = pane.number;
    frame.badge.hidden = !compared || Boolean(pane.isDifference);
    const title = visible(pane.run);
    frame.title.textContent = title;
    frame.title.title = title;
    frame.node.setAttribute("aria-label", compared ? `${pane.key}: ${title}` : title);
    const ownLayer = pane.number > 1 && pane.entry && scene.view !== "overview";
    frame.subtitle.textContent = pane.map ? subtitle(pane, scene, !ownLayer) : "";
    frame.subtitle.title = frame.subtitle.textContent;
    frame.layer.node.hidden = !ownLayer;
    if (ownLayer) {
      frame.layer.show(
        pane.entries.map(({ tag }) => ({ value: tag, text: visible(pane.shortName(tag)) })),
        pane.entry.tag,
      );
    }
    frame.measure.textContent = pane.map ? measureOf(pane.map) : "";
    frame.measure.hidden = frame.measure.textContent === "";
    const message = pane.message ?? emptiness(pane.map);
    frame.message.textContent = message;
    frame.message.hidden = message === null;
    frame.body.hidden = message !== null;
    const usable = message === null && pane.map;
    const isText = usable && scene.text && scene.view !== "overview" && scene.view !== "image"
      && Boolean(pane.map.queryTokens ?? pane.map.keyTokens) && !pane.map.image;
    frame.strip.node.hidden = !isText;
    if (isText) frame.strip.draw(pane, scene);
    if (!usable) {
      frame.view?.node.remove();
      frame.view = null;
      return;
    }
    this.drawView(frame, pane, scene);
  }

  drawView(frame, pane, scene) {
    const View = VIEWS[scene.view];
    if (!(frame.view instanceof View)) {
      frame.view?.node.remove();
      frame.view = new View({
        ...this.actions,
        hover: this.hover,
        read: this.read,
        enlarge: (head) => this.actions.head(head),
        choose: (tag, head) => this.actions.choose(tag, head, frame.pane),
      });
      frame.body.append(frame.view.node);
    }
    const { width, height } = (frame.size ??= { width: frame.body.clientWidth, height: frame.body.clientHeight });
    frame.view.draw(pane, scene, width - 2, height - 2);
  }

  /** There is another room for all of it: views may be drawn anew, each when its own is told. */
  unsettle() {
    for (const frame of this.frames) frame.settled = false;
  }

  /** What lies above a view changed its room: draw once more, but not without end. */
  resized(frame, { width, height }) {
    if (!width || !height || (frame.size?.width === width && frame.size.height === height)) return;
    frame.size = { width, height };
    if (frame.settled || !frame.view) return;
    frame.settled = true;
    this.drawView(frame, frame.pane, frame.scene);
  }

  /** Before the first run has maps. */
  drawEmpty(loading) {
    for (const frame of this.frames) frame.node.remove();
    this.frames = [];
    this.empty?.remove();
    this.empty = loading
      ? el("div.welcome", {}, el("p", {}, "Loading…"))
      : el(
          "div.welcome", {},
          el("h2", {}, "No attention maps yet"),
          el("p", {}, "Train with the callback, and the maps of every validation appear here while training goes on:"),
          el("pre", {}, EXAMPLE),
        );
    this.node.append(this.empty);
  }

  crosshair(place) {
    for (const { view } of this.frames) view?.crosshair(place);
  }

  /** Colour every pane's text by what is pointed at. */
  colourText(focus) {
    for (const { strip } of this.frames) if (!strip.node.hidden) strip.read(focus);
  }

  view(i) {
    return this.frames[i]?.view ?? null;
  }
}

function emptiness(map) {
  if (!map) return null;
  const [rows, columns] = [map.rows, map.columns];
  if (map.hiddenCount && rows * columns === 0) return "Every token is hidden: show some again with Hide tokens.";
  return rows * columns * map.headCount === 0 ? "This map is empty: its sequence has no tokens." : null;
}
