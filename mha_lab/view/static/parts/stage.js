/** The middle of the page: one pane, or two side by side, each with the chosen view. */

import { chooser, el } from "../draw/dom.js";
import { visible } from "../draw/format.js";
import { subtitle } from "../draw/figure.js";
import { HeadsView } from "../views/heads.js";
import { LinesView } from "../views/lines.js";
import { MapView } from "../views/map.js";
import { OverviewView } from "../views/overview.js";

const VIEWS = { heads: HeadsView, map: MapView, lines: LinesView, overview: OverviewView };
const EXAMPLE = `from mha_lab import AttentionMapLogger

trainer = Trainer(callbacks=[AttentionMapLogger()])
trainer.fit(model)`;

export class Stage {
  constructor(actions, hover) {
    this.actions = actions;
    this.hover = hover;
    this.node = el("div.stage");
    this.frames = [];
  }

  draw(scene) {
    if (this.empty) {
      this.empty.remove();
      this.empty = null;
    }
    while (this.frames.length > scene.shown.length) this.frames.pop().node.remove();
    while (this.frames.length < scene.shown.length) this.addFrame();
    this.frames.forEach((frame, i) => this.drawFrame(frame, scene.shown[i], scene));
  }

  addFrame() {
    const frame = {
      badge: el("span.badge"),
      title: el("h2"),
      subtitle: el("span.subtitle"),
      layer: chooser("Layer of this run", (layer2) => this.actions.set({ layer2 })),
      message: el("p.message"),
      body: el("div.body"),
      view: null,
    };
    frame.heading = el("div.heading", {}, frame.badge, frame.title, frame.layer.node, frame.subtitle);
    frame.node = el("section.pane", {}, frame.heading, frame.message, frame.body);
    this.node.append(frame.node);
    this.frames.push(frame);
  }

  drawFrame(frame, pane, scene) {
    const compared = scene.shown.length > 1;
    frame.badge.textContent = pane.key;
    frame.badge.className = `badge ${pane.key.toLowerCase()}`;
    frame.badge.hidden = !compared;
    frame.title.textContent = visible(pane.run);
    frame.title.title = visible(pane.run);
    const ownLayer = pane.key === "B" && pane.entry && scene.view !== "overview";
    frame.subtitle.textContent = pane.map ? subtitle(pane, scene, !ownLayer) : "";
    frame.subtitle.title = frame.subtitle.textContent;
    frame.layer.node.hidden = !ownLayer;
    if (ownLayer) {
      frame.layer.show(
        pane.entries.map(({ tag }) => ({ value: tag, text: visible(pane.shortName(tag)) })),
        pane.entry.tag,
      );
    }
    const nothing = pane.map && pane.map.rows * pane.map.columns * pane.map.headCount === 0;
    const message = pane.message ?? (nothing ? "This map is empty: its sequence has no tokens." : null);
    frame.message.textContent = message;
    frame.message.hidden = message === null;
    frame.body.hidden = message !== null;
    if (message !== null || !pane.map) {
      frame.view?.node.remove();
      frame.view = null;
      return;
    }
    const View = VIEWS[scene.view];
    if (!(frame.view instanceof View)) {
      frame.view?.node.remove();
      frame.view = new View({
        ...this.actions,
        hover: this.hover,
        enlarge: (head) => this.actions.head(head),
        choose: (tag, head) => this.actions.choose(tag, head, frame.pane),
      });
      frame.body.append(frame.view.node);
    }
    frame.pane = pane;
    frame.view.draw(pane, scene, frame.body.clientWidth - 2, frame.body.clientHeight - 2);
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

  heatmaps(i) {
    return this.frames[i]?.view?.heatmaps() ?? [];
  }
}
