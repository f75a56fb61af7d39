/** The cross-hair moved by keys, for those who use no pointer: in every view what it points at. */

import { indexOf, positionOf } from "../data/lens.js";

const WAYS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** @param page: has scene, place, stage, actions, hover. */
export function moveCrosshair(page, key) {
  const pane = page.scene?.shown.find(({ map }) => map);
  if (!pane) return;
  const view = page.stage.view(page.scene.shown.indexOf(pane));
  const [heatmap] = view?.heatmaps() ?? [];
  const [down, right] = WAYS[key];
  if (heatmap) onMap(page, pane, heatmap, down, right);
  else if (page.scene.view === "overview") toThumbnail(view, down + right);
  else toQuery(page, pane, down + right);
}

function onMap(page, pane, heatmap, down, right) {
  const { query, key } = page.place ?? { query: 0, key: -1 };
  const wanted = { query: query + down, key: Math.max(key + right, page.place ? -1 : 0) };
  const place = {
    query: Math.min(Math.max(wanted.query, 0), pane.map.rows - 1),
    key: Math.min(Math.max(wanted.key, 0), pane.map.columns - 1),
  };
  page.hover({ ...place, ...heatmap.pointOf(place.query, place.key), pane, head: heatmap.head });
}

/** Lines and images are of one query: go to the next. */
function toQuery(page, pane, by) {
  const now = indexOf(pane.map, "query", page.state.query);
  const next = Math.min(Math.max(now + by, 0), pane.map.rows - 1);
  page.actions.pin({ query: positionOf(pane.map, "query", next), keep: true });
}

function toThumbnail(view, by) {
  const nodes = [...view.node.querySelectorAll("button.thumbnail")];
  const here = nodes.indexOf(document.activeElement);
  nodes[Math.min(Math.max(here + by, 0), nodes.length - 1)]?.focus();
}
