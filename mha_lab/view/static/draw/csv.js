/**
 * The weights that are shown, one a line; for all layers, the heads' scores. Tokens are exact.
 * Weights were kept as codes of one or two bytes: each has as many digits as are true, and beside
 * it by how much it may differ from the model's own.
 */

import { positionOf } from "../data/lens.js";

export function csv(scene, panes) {
  const lines = scene.view === "overview" ? scoreLines(scene, panes) : weightLines(scene, panes);
  return lines.map((line) => `${line.map(quoted).join(",")}\r\n`).join("");
}

function weightLines(scene, panes) {
  const lines = [[
    "run", "map", "kind", "numbers", "step", "sample", "head",
    "query", "query_token", "key", "key_token", "weight", "error_at_most",
  ]];
  for (const pane of panes) {
    const { map } = pane;
    const all = Array.from({ length: map.headCount }, (_, head) => head);
    for (const head of ["heads", "image"].includes(scene.view) ? all : [scene.headOf(map)]) {
      const weights = map.of(head);
      const name = head === "mean" ? "mean" : (map.heads?.[head] ?? head);
      for (let i = 0; i < weights.length; i += 1) {
        const [query, key] = [Math.floor(i / map.columns), i % map.columns];
        const kept = Number(weights[i].toPrecision(map.digitsOf(weights[i])));
        const error = weights[i] === 0 ? 0 : map.errorOf(weights[i]) + Math.abs(kept - weights[i]);
        lines.push([
          pane.run, pane.entry.name, map.kind, numbersOf(map), pane.step, map.samples[pane.sample], name,
          positionOf(map, "query", query), map.queryTokens?.[query] ?? "",
          positionOf(map, "key", key), map.keyTokens?.[key] ?? "",
          kept, Number((1.01 * error).toPrecision(2)),
        ]);
      }
    }
  }
  return lines;
}

/** What the numbers are: "weights", or "value-weighted, mean of 200 × 200, rows scaled anew". */
function numbersOf(map) {
  const { pooledFrom, pool } = map.whole ?? map; // a part of a map is smaller, and no mean
  const pooled = pooledFrom && `${pool === "max" ? "largest" : "mean"} of ${pooledFrom.join(" × ")}`;
  return [map.measure, pooled, map.hiddenCount && "rows scaled anew"].filter(Boolean).join(", ");
}

function scoreLines(scene, panes) {
  const lines = [["run", "map", "step", "sample", "head", ...scene.scoreNames]];
  for (const pane of panes) {
    for (const { tag, head } of pane.ranking(scene.score, scene.order)) {
      const entry = pane.entries.find((one) => one.tag === tag);
      const about = pane.scores.byTag.get(tag);
      lines.push([
        pane.run, entry.name, pane.stepOf(entry), about.samples[pane.sample], about.heads?.[head] ?? head,
        ...scene.scoreNames.map((name) => pane.scoreOf(name, head, tag) ?? ""),
      ]);
    }
  }
  return lines;
}

function quoted(value) {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
