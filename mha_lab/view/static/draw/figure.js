/** What is shown, as a figure of its own: an SVG with title, tokens, scores and a colour bar. */

import { svg } from "./dom.js";
import { count, headName, label, score, shorten, visible, weight, words } from "./format.js";
import { DECADES, levels, picture, tops } from "./colouring.js";
import { LEVELS, css } from "./palette.js";

const MONO = 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace';
const SANS = 'system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif';
const MOST_RECTANGLES = 40000; // beyond this, maps go in as images
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

export function subtitle(pane, scene, withLayer = true) {
  const layer = visible(pane.shortName(pane.entry.tag));
  const what = scene.view === "overview"
    ? ["all layers"]
    : [...(withLayer ? [layer] : []), pane.map.kind, `${pane.map.rows} × ${pane.map.columns}`];
  const sample = pane.map.samples[pane.sample] ?? pane.sample;
  return [what[0], `step ${count(pane.step)}`, ...what.slice(1), `sample ${sample}`].join(" · ");
}

function paneFigure(pane, scene, overview) {
  if (scene.view === "overview") return thumbnails(pane, scene, overview);
  if (scene.view === "lines") return linesFigure(pane, scene);
  if (scene.view === "map") return grid([scene.headOf(pane.map)], 1, 520, pane, scene);
  const heads = Array.from({ length: pane.map.headCount }, (_, head) => head);
  return grid(heads, Math.min(4, heads.length), 240, pane, scene);
}

/** Heads in rows of so many, each at most `size` wide and high. */
function grid(heads, columns, size, pane, scene) {
  const { map } = pane;
  const cell = Math.min(size / Math.max(map.rows, map.columns, 1), 40);
  const labelled = cell >= 9;
  const left = labelled ? 8 + 6.7 * longest(map.queryTokens, map.rows) : 0;
  const top = 20 + (labelled ? 8 + 6.7 * longest(map.keyTokens, map.columns) : 0);
  const [w, h] = [map.columns * cell, map.rows * cell];
  const asImages = heads.length * map.rows * map.columns * scene.shown.length > MOST_RECTANGLES;
  const nodes = heads.map((head, i) => {
    const [x, y] = [(i % columns) * (left + w + GAP), Math.floor(i / columns) * (top + h + GAP)];
    const value = pane.scoreOf(scene.score, head);
    const name = headName(map, head) + (value === undefined ? "" : ` · ${words(scene.score)} ${score(value)}`);
    return svg(
      "g", { transform: `translate(${x} ${y})` },
      text(left, 12, name, { "font-weight": 600 }),
      ...(labelled ? axes(map, left, top, cell, scene) : []),
      svg("rect", { x: left, y: top, width: w, height: h, fill: scene.theme.blocked }),
      svg("g", { transform: `translate(${left} ${top})` }, cells(map, head, cell, scene, asImages)),
      svg("rect", { x: left, y: top, width: w, height: h, fill: "none", stroke: scene.theme.rule }),
    );
  });
  const rows = Math.ceil(heads.length / columns);
  return {
    nodes,
    width: Math.max(260, Math.min(columns, heads.length) * (left + w + GAP) - GAP),
    height: rows * (top + h + GAP) - GAP,
  };
}

/** The cells as rectangles, neighbours of one colour as one; or as an image, if they are many. */
function cells(map, head, cell, scene, asImage) {
  if (asImage) return image(map, head, map.columns * cell, map.rows * cell, scene);
  const places = levels(map, head, scene.scale);
  const group = svg("g", { "shape-rendering": "crispEdges" });
  for (let q = 0; q < map.rows; q += 1) {
    for (let k = 0; k < map.columns; ) {
      const place = places[q * map.columns + k];
      let end = k + 1;
      while (end < map.columns && places[q * map.columns + end] === place) end += 1;
      if (place !== -1) {
        const fill = place === -2 ? "#d62878" : css(scene.table, place);
        group.append(svg("rect", {
          x: round(k * cell), y: round(q * cell), width: round((end - k) * cell), height: round(cell), fill,
        }));
      }
      k = end;
    }
  }
  return group;
}

function image(map, head, width, height, scene) {
  const canvas = document.createElement("canvas");
  const times = Math.max(1, Math.round(width / map.columns)); // large pixels survive smoothing
  [canvas.width, canvas.height] = [map.columns, map.rows];
  canvas.getContext("2d").putImageData(picture(map, head, scene.scale, scene.table), 0, 0);
  const large = document.createElement("canvas");
  [large.width, large.height] = [map.columns * times, map.rows * times];
  const context = large.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, large.width, large.height);
  return svg("image", { width, height, href: large.toDataURL(), preserveAspectRatio: "none" });
}

function axes(map, left, top, cell, scene) {
  const nodes = [];
  const style = { "font-family": MONO, "font-size": 11, fill: scene.theme.muted };
  const every = Math.ceil(11 / cell);
  for (let q = 0; q < map.rows; q += every) {
    const y = top + (q + 0.5) * cell + 4;
    nodes.push(text(left - 5, y, shorten(label(map.queryTokens, q), 18), { ...style, "text-anchor": "end" }));
  }
  for (let k = 0; k < map.columns; k += every) {
    const [x, y] = [left + (k + 0.5) * cell + 4, top - 5];
    const turned = { ...style, transform: `rotate(-90 ${x} ${y})` };
    nodes.push(text(x, y, shorten(label(map.keyTokens, k), 18), turned));
  }
  return nodes;
}

function linesFigure(pane, scene) {
  const { map } = pane;
  const head = scene.headOf(map);
  const places = levels(map, head, scene.scale);
  const step = 18;
  const most = Math.max(map.rows, map.columns);
  const [left, right] = [150, 410];
  const y = (own, i) => 30 + (i + 0.5 + (most - own) / 2) * step;
  const style = { "font-family": MONO, "font-size": 12 };
  const focus = scene.query !== null && scene.query < map.rows ? scene.query : null;
  const drawn = [];
  places.forEach((place, i) => {
    const [query, key] = [Math.floor(i / map.columns), i % map.columns];
    const part = (place % LEVELS) / (LEVELS - 1);
    if (place >= 0 && part > 0.02 && (focus === null || focus === query)) drawn.push({ query, key, part, place });
  });
  drawn.sort((a, b) => a.part - b.part);
  const nodes = [text(0, 12, headName(map, head), { "font-weight": 600 })];
  for (const { query, key, part, place } of drawn) {
    const [from, to] = [y(map.rows, query), y(map.columns, key)];
    nodes.push(svg("path", {
      d: `M${left} ${from}C${left + 110} ${from} ${right - 110} ${to} ${right} ${to}`, fill: "none",
      stroke: css(scene.table, Math.round(50 + 0.8 * place)), "stroke-width": round(0.6 + 3 * part), "stroke-opacity": round(0.4 + 0.6 * part),
    }));
  }
  for (let q = 0; q < map.rows; q += 1) {
    const weightOf = focus === q ? { "font-weight": 700 } : {};
    nodes.push(text(left - 8, y(map.rows, q) + 4, shorten(label(map.queryTokens, q), 18), { ...style, ...weightOf, "text-anchor": "end" }));
  }
  for (let k = 0; k < map.columns; k += 1) {
    nodes.push(text(right + 8, y(map.columns, k) + 4, shorten(label(map.keyTokens, k), 18), style));
    if (focus !== null) {
      const value = map.says(head, focus, k);
      nodes.push(text(right + 200, y(map.columns, k) + 4, value, { fill: scene.theme.muted, "text-anchor": "end" }));
    }
  }
  return { nodes, width: 620, height: 40 + most * step };
}

/** @param overview: Map from a pane to its loaded maps by tag. */
function thumbnails(pane, scene, overview) {
  const size = 72;
  const wanted = pane.ranking(scene.score, scene.order);
  const layers = scene.order === "model" ? new Map() : null;
  const columns = layers ? Math.max(...wanted.map((one) => one.head + 1)) : 8;
  const nodes = [];
  wanted.forEach(({ tag, head, value }, i) => {
    const map = overview.get(pane).get(tag);
    if (!map) return;
    if (layers && !layers.has(tag)) layers.set(tag, layers.size);
    const [row, column] = layers ? [layers.get(tag), head] : [Math.floor(i / columns), i % columns];
    const [x, y] = [column * (size + 10), row * (size + 40) + 16];
    const part = Math.min(size / map.columns, size / map.rows);
    const [w, h] = [map.columns * part, map.rows * part];
    if (!layers || column === 0) {
      nodes.push(text(x, y - 4, shorten(visible(pane.shortName(tag)), layers ? 60 : 12), { "font-size": 10, fill: scene.theme.muted }));
    }
    nodes.push(
      svg("rect", { x, y, width: w, height: h, fill: scene.theme.blocked }),
      svg("g", { transform: `translate(${x} ${y})` }, image(map, head, w, h, scene)),
      text(x, y + h + 12, `${map.heads ? map.heads[head] : head}${value === undefined ? "" : ` · ${score(value)}`}`, { "font-size": 10 }),
    );
  });
  const rows = layers ? layers.size : Math.ceil(wanted.length / columns);
  return { nodes, width: Math.max(260, columns * (size + 10) - 10), height: rows * (size + 40) };
}

/** What the ends of the colours stand for, in words. */
export function legendTexts({ panes, scale, view, headOf }) {
  const [pane] = panes;
  const one = pane?.map && ["map", "lines"].includes(view) && scale.relative === "head";
  const top = one ? tops(pane.map, headOf(pane.map), scale) : scale.largest;
  const number = scale.relative === "global" || one;
  const over = one && pane.map.maximum(headOf(pane.map)) > 1.001 * top ? "≥ " : "";
  const high = { row: "row’s largest", head: one ? `${over}${weight(top)}` : "large in its head", global: weight(top) };
  const faint = number ? weight(top / 10 ** DECADES) : `× 10⁻${"⁰¹²³⁴⁵"[DECADES]}`;
  return { low: scale.curve === "log" ? faint : "0", high: high[scale.relative] };
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

function text(x, y, content, attributes = {}) {
  return svg("text", { x: round(x), y: round(y), "xml:space": "preserve", ...attributes }, content);
}

function longest(tokens, length) {
  let most = 0;
  for (let i = 0; i < length; i += 1) most = Math.max(most, [...shorten(label(tokens, i), 18)].length);
  return most;
}

function round(number) {
  return Math.round(number * 100) / 100;
}
