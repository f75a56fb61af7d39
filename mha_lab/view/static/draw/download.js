/** Files of what is shown: a picture (PNG, SVG) or the numbers (CSV). */

import { fileName, headName } from "./format.js";
import { figure } from "./figure.js";

const PIXELS_PER_UNIT = 2;

export async function download(kind, scene) {
  const shown = scene.shown.filter((pane) => pane.map);
  if (shown.length === 0) return;
  const blob = kind === "csv" ? new Blob([csv(scene, shown)], { type: "text/csv" }) : await drawn(kind, scene, shown);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = fileName(nameParts(scene, shown), kind);
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function nameParts(scene, [pane, other]) {
  const runs = other ? `${pane.run}-vs-${other.run}` : pane.run;
  const what = scene.view === "overview" ? "all-layers" : pane.entry.name;
  const head = ["map", "lines"].includes(scene.view) ? headName(pane.map, scene.headOf(pane.map)) : "";
  return ["attention", runs, what, head, `step${pane.step}`];
}

async function drawn(kind, scene, panes) {
  const overview = new Map();
  if (scene.view === "overview") {
    await Promise.all(panes.map(async (pane) => overview.set(pane, await allMaps(pane))));
  }
  const root = figure(scene, overview);
  const source = new Blob([new XMLSerializer().serializeToString(root)], { type: "image/svg+xml" });
  return kind === "svg" ? source : raster(source, root);
}

async function allMaps(pane) {
  const maps = await Promise.allSettled(
    pane.entries.map((entry) => pane.source.map(pane.run, entry, pane.stepOf(entry), pane.sample)),
  );
  return new Map(pane.entries.map((entry, i) => [entry.tag, maps[i].value]));
}

async function raster(source, root) {
  const picture = new Image();
  picture.src = URL.createObjectURL(source);
  await picture.decode();
  URL.revokeObjectURL(picture.src);
  const canvas = document.createElement("canvas");
  canvas.width = PIXELS_PER_UNIT * Number(root.getAttribute("width"));
  canvas.height = PIXELS_PER_UNIT * Number(root.getAttribute("height"));
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** The weights that are shown, one a line; for all layers, the heads' scores. Tokens are exact. */
export function csv(scene, panes) {
  const lines = scene.view === "overview" ? scoreLines(scene, panes) : weightLines(scene, panes);
  return lines.map((line) => `${line.map(quoted).join(",")}\r\n`).join("");
}

function weightLines(scene, panes) {
  const lines = [[
    "run", "map", "kind", "step", "sample", "head",
    "query", "query_token", "key", "key_token", "weight",
  ]];
  for (const pane of panes) {
    const { map } = pane;
    const all = Array.from({ length: map.headCount }, (_, head) => head);
    for (const head of scene.view === "heads" ? all : [scene.headOf(map)]) {
      const weights = map.of(head);
      const name = head === "mean" ? "mean" : (map.heads?.[head] ?? head);
      for (let i = 0; i < weights.length; i += 1) {
        const [query, key] = [Math.floor(i / map.columns), i % map.columns];
        lines.push([
          pane.run, pane.entry.name, map.kind, pane.step, map.samples[pane.sample], name,
          query, map.queryTokens?.[query] ?? "", key, map.keyTokens?.[key] ?? "",
          Number(weights[i].toPrecision(6)),
        ]);
      }
    }
  }
  return lines;
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
