/** One head, or the mean of the heads, as large as the room allows, with its scores beside it. */

import { positionOf } from "../data/lens.js";
import { el } from "../draw/dom.js";
import { fullHeadName, score, words } from "../draw/format.js";
import { Heatmap } from "../draw/heatmap.js";
import { explain } from "../data/scores.js";

const SCORES_WIDTH = 216;
const [WIDE, LOW, TIGHT] = [620, 420, 360];

export class MapView {
  constructor({ hover, linesOf, move }) {
    this.heatmap = new Heatmap({
      axes: "full",
      values: true,
      onHover: (place) => hover(place && { ...place, pane: this.pane, head: this.head }),
      onPick: (place) => place && linesOf({ query: positionOf(this.pane.map, "query", place.query) }),
      onWindow: move,
    });
    this.heatmap.wheels = true;
    this.list = el("dl.scores");
    this.node = el("div.single", {}, this.heatmap.node, this.list);
  }

  draw(pane, scene, width, height) {
    const { map } = pane;
    const head = scene.headOf(map);
    const wide = width >= WIDE;
    const isLow = !wide && height < LOW; // the map needs all the room
    const names = isLow ? [] : Object.keys(map.scores).filter((name) => pane.scoreOf(name, head) !== undefined);
    this.pane = pane;
    this.head = head;
    this.node.classList.toggle("stacked", !wide);
    this.node.classList.toggle("tight", width < TIGHT);
    const below = names.length && !wide ? 26 * Math.ceil(names.length / 2) + 12 : 0;
    const beside = names.length && wide ? SCORES_WIDTH : 0;
    this.heatmap.show(map, head, scene, width - beside, height - below, fullHeadName(map, head));
    this.list.replaceChildren(
      ...names.flatMap((name) => {
        const chosen = name === scene.score ? ".chosen" : "";
        return [
          el(`dt${chosen}`, { title: explain(name) }, words(name)),
          el(`dd${chosen}`, {}, this.rank(pane, name, head), score(pane.scoreOf(name, head))),
        ];
      }),
    );
  }

  /** Where this head stands among the heads of its layer: a line of ticks, its own marked. */
  rank(pane, name, head) {
    const values = pane.map.scores[name][pane.sample] ?? [];
    const known = values.filter((value) => value !== null);
    if (known.length < 2) return null;
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const line = el("span.rank", { title: `among the heads of this layer: ${score(low)} to ${score(high)}` });
    values.forEach((value, i) => {
      if (value === null) return;
      const tick = el(i === head ? "i.own" : "i");
      tick.style.left = `${high > low ? (100 * (value - low)) / (high - low) : 50}%`;
      line.append(tick);
    });
    return line;
  }

  crosshair(place) {
    this.heatmap.crosshair(place);
  }

  heatmaps() {
    return [this.heatmap];
  }
}
