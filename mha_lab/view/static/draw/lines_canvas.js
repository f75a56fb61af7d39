/** Lines and tokens of the lines view, as far as they are in sight. */

import { label, shorten } from "./format.js";
import { LEVELS, css, headColour } from "./palette.js";

const FONT = '12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace';
const LONGEST = 18;

/** The lowest colours are the page's own; a line must be seen. */
const seen = (place) => Math.floor(place / LEVELS) * LEVELS + Math.round(0.2 * LEVELS + 0.8 * (place % LEVELS));

export function tableOf({ pane, scene }) {
  return pane.map.isDifference ? scene.differences : scene.table;
}

/** @param view: the lines view: pane, scene, lines of each head, edges, step. */
export function paintLines(context, view, focus, { first, last }) {
  const { scene, leftEdge, rightEdge, heads } = view;
  const table = tableOf(view);
  const bend = (rightEdge - leftEdge) * 0.42;
  view.lines.forEach((lines, i) => {
    const colour = heads.length > 1 ? headColour(heads[i], scene.dark) : null;
    for (const { query, key, part, place, among } of lines) {
      if (focus ? focus.index !== (focus.side === "query" ? query : key) : !among) continue;
      const [from, to] = [view.middle("query", query), view.middle("key", key)];
      if (Math.max(from, to) < first || Math.min(from, to) > last) continue;
      context.beginPath();
      context.moveTo(leftEdge, from);
      context.bezierCurveTo(leftEdge + bend, from, rightEdge - bend, to, rightEdge, to);
      context.strokeStyle = colour ?? css(table, seen(place));
      context.globalAlpha = focus ? 0.3 + 0.7 * Math.sqrt(part) : (0.25 + 0.75 * part) / Math.sqrt(heads.length);
      context.lineWidth = (focus ? 1 : 0.6) + (focus ? 3.5 : 2.2) * part * part;
      context.stroke();
    }
  });
  context.globalAlpha = 1;
}

export function paintTokens(context, view, focus, inSight) {
  const { map } = view.pane;
  const places = new Map(); // of the focused row or column, of the first head
  if (focus) {
    for (const line of view.lines[0]) {
      const [own, other] = focus.side === "query" ? [line.query, line.key] : [line.key, line.query];
      if (own === focus.index) places.set(other, line.place);
    }
  }
  paintSide(context, view, "query", map.queryTokens, map.rows, focus, places, inSight);
  paintSide(context, view, "key", map.keyTokens, map.columns, focus, places, inSight);
}

function paintSide(context, view, side, tokens, length, focus, places, { first, last }) {
  const { leftEdge, rightEdge, step } = view;
  const { theme, find } = view.scene;
  const { map } = view.pane;
  const isQuery = side === "query";
  context.textBaseline = "middle";
  context.font = FONT;
  for (let index = 0; index < length; index += 1) {
    const y = view.middle(side, index);
    if (y < first || y > last) continue;
    const text = shorten(label(tokens, index, isQuery ? map.queryAt : map.keyAt), LONGEST);
    const own = focus && focus.side === side && focus.index === index;
    const across = focus && focus.side !== side;
    if (own) chip(context, view, isQuery, text, y);
    const hit = find && tokens?.[index].toLowerCase().includes(find);
    context.fillStyle = own ? theme.page : hit ? theme.accent : across || !focus ? theme.ink : theme.muted;
    context.textAlign = isQuery ? "right" : "left";
    const [x, room] = isQuery ? [leftEdge - 10, leftEdge - 12] : [rightEdge + 10, view.width - rightEdge - view.bars - 60];
    if (!across) {
      context.fillText(text, x, y, room);
      continue;
    }
    const place = places.get(index) ?? -1;
    const part = place < 0 ? 0 : (place % LEVELS) / (LEVELS - 1);
    context.globalAlpha = 0.4 + 0.6 * Math.min(1, part * 2);
    context.fillText(text, x, y, room);
    context.globalAlpha = 1;
    if (place >= 0 && view.heads.length === 1) paintValue(context, view, isQuery, index, focus, y, place, part, step);
  }
}

function chip(context, { leftEdge, rightEdge, step, scene }, isQuery, text, y) {
  const width = Math.min(context.measureText(text).width, leftEdge - 12) + 12;
  context.fillStyle = scene.theme.accent;
  context.beginPath();
  context.roundRect(isQuery ? leftEdge - 4 - width : rightEdge + 4, y - step / 2 + 1, width, step - 2, 4);
  context.fill();
}

function paintValue(context, view, isQuery, index, focus, y, place, part, step) {
  const { scene, leftEdge, rightEdge, bars, width } = view;
  const { map } = view.pane;
  const [query, key] = isQuery ? [index, focus.index] : [focus.index, index];
  context.fillStyle = css(tableOf(view), seen(place));
  context.fillRect(isQuery ? leftEdge - 5 : rightEdge, y - step * 0.35, 5, step * 0.7);
  if (isQuery) return;
  if (bars) context.fillRect(width - 54 - bars, y - 3, bars * part, 6);
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "right";
  context.fillStyle = scene.theme.muted;
  context.fillText(map.says(view.heads[0], query, key), width - 4, y);
  context.font = FONT;
}
