/** What a pane shows, in a line: layer, step, kind, size, sample, and what was changed. */

import { count, visible } from "./format.js";

const MEASURES = {
  "value-weighted": "Value-weighted: each weight times the norm of its value. Rows do not sum to 1.",
  rollout: "Rollout: what reaches a position through the layers up to this one.",
};

/** What the numbers are, in a sentence; nothing where they are weights. */
export function measureOf({ measure }) {
  return measure === "weights" ? "" : (MEASURES[measure] ?? visible(measure));
}

export function subtitle(pane, scene, withLayer = true) {
  const { map } = pane;
  const sample = map.samples[pane.sample] ?? pane.sample;
  const layer = visible(pane.shortName(pane.entry.tag));
  const isOverview = scene.view === "overview";
  const parts = [isOverview ? "all layers" : withLayer ? layer : null];
  if (scene.hasSteps) parts.push(`step ${count(pane.step)}`);
  if (!isOverview) parts.push(map.kind, sizeOf(map));
  parts.push(`sample ${sample}`);
  if (map.hiddenCount) parts.push(`${map.hiddenCount} tokens hidden, rows scaled anew`);
  return parts.filter((part) => part !== null).join(" · ");
}

/** "64 × 64", of a pooled map also what it is the mean of, of a window what it is part of. */
export function sizeOf(map) {
  const whole = map.whole ?? map;
  const size = `${map.rows} × ${map.columns}`;
  const pooled = whole.pooledFrom && ` (${whole.pool === "max" ? "largest" : "mean"} of ${whole.pooledFrom.join(" × ")})`;
  const all = map.all ?? map;
  const isWindow = all.rows !== map.rows || all.columns !== map.columns;
  return `${size}${isWindow ? ` of ${all.rows} × ${all.columns}` : ""}${pooled || ""}`;
}
