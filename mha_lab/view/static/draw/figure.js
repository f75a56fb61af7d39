/** What is shown, as a figure of its own: an SVG with title, tokens, scores and a colour bar. */

import { svg } from "./dom.js";
import { grid } from "./figure_grid.js";
import { linesFigure } from "./figure_lines.js";
import { SANS, text } from "./figure_parts.js";
import { thumbnails } from "./figure_thumbnails.js";
import { visible, words } from "./format.js";
import { legendTexts } from "./legend.js";
import { LEVELS, css } from "./palette.js";
import { subtitle } from "./titles.js";

const GAP = 22;
const TITLE = 58;

/** @returns {SVGElement} with its width and height, on a background of its own. */
export function figure(scene, overview) {
  const panes = scene.shown.filter((pane) => pane.map);
  const parts = panes.map((pane) => paneFigure(pane, scene, overview));
  const width = 40 + parts.reduce((sum, part) => sum + part.width + GAP, -GAP);
  const height = TITLE + Math.max(...parts.map((part) => part.height)) + 56;
  const root = svg("svg", {
    xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`,
    "font-family": SANS, "font-size": 12, fill: scene.theme.ink,
  });
  root.append(svg("rect", { width, height, fill: scene.theme.page }));
  let x = 20;
  panes.forEach((pane, i) => {
    const title = text(x, 26, visible(pane.run), { "font-size": 14, "font-weight": 600 });
    root.append(title, text(x, 44, subtitle(pane, scene), { fill: scene.theme.muted }));
    root.append(svg("g", { transform: `translate(${x} ${TITLE})` }, ...parts[i].nodes));
    x += parts[i].width + GAP;
  });
  root.append(legend(20, height - 30, scene));
  return root;
}

function paneFigure(pane, scene, overview) {
  if (scene.view === "overview") return thumbnails(pane, scene, overview);
  if (scene.view === "lines") return linesFigure(pane, scene);
  if (scene.view === "map") return grid([scene.headOf(pane.map)], 1, 520, pane, scene);
  const heads = Array.from({ length: pane.map.headCount }, (_, head) => head);
  return grid(heads, Math.min(4, heads.length), 240, pane, scene);
}

function legend(x, y, scene) {
  const { scale, table, theme } = scene;
  const { low, high } = legendTexts(scene);
  const curve = { linear: "linear", root: "square root", log: "logarithmic" }[scale.curve];
  const stops = Array.from({ length: 64 }, (_, i) => {
    const fill = css(table, Math.round((i * (LEVELS - 1)) / 63));
    return svg("rect", { x: x + 70 + i * 2, y: y - 9, width: 2.5, height: 10, fill });
  });
  const scored = scene.score && scene.view !== "lines" ? ` · score: ${words(scene.score)}` : "";
  return svg(
    "g", { fill: theme.muted, "font-size": 11 },
    text(x + 64, y, low, { "text-anchor": "end" }), ...stops,
    text(x + 204, y, `${high} (${curve})${scored}`),
  );
}
