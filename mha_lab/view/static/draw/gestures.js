/** What a pointer does on a map: point, pick, frame what to zoom to, move the window, zoom. */

import { cutOut, moved, zoomed } from "../data/window.js";

const CLICK = 4; // pixels that a click may move
const STEP = 1.3; // of the wheel

/** @param heatmap: has canvas, map, layout, cellAt, placeOf, showBox, onHover, onPick, onWindow. */
export function handle(heatmap) {
  const { canvas } = heatmap;
  let drag = null;

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !heatmap.placeOf(event)) return;
    const isWindow = Boolean(heatmap.map.all) && heatmap.map.all !== heatmap.map;
    drag = { start: heatmap.cellAt(event), x: event.clientX, y: event.clientY, map: heatmap.map };
    drag.frames = !isWindow || event.shiftKey;
    canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      heatmap.onHover(heatmap.placeOf(event));
      return;
    }
    const far = Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > CLICK;
    drag.moved ||= far && event.pointerType !== "touch";
    if (!drag.moved) return;
    heatmap.onHover(null);
    if (drag.frames) heatmap.showBox((drag.spans = framed(heatmap, drag.start, event)));
    else {
      // By pixels: the axes may change their width while the window moves.
      const { wide, high } = heatmap.layout;
      const by = { query: Math.round((drag.y - event.clientY) / high), key: Math.round((drag.x - event.clientX) / wide) };
      if (by.query || by.key) heatmap.onWindow(moved(drag.map, by));
    }
  });

  canvas.addEventListener("pointerup", (event) => {
    const done = drag;
    drag = null;
    heatmap.showBox(null);
    if (done?.spans) heatmap.onWindow(cutOut(heatmap.map, done.spans));
    else if (done && !done.moved && heatmap.onPick) heatmap.onPick(heatmap.placeOf(event));
  });
  canvas.addEventListener("pointercancel", () => {
    drag = null;
    heatmap.showBox(null);
  });
  canvas.addEventListener("pointerleave", () => !drag && heatmap.onHover(null));

  canvas.addEventListener(
    "wheel",
    (event) => {
      // In a page that scrolls, or that is not being used, the wheel scrolls.
      const own = event.ctrlKey || (heatmap.wheels && document.hasFocus());
      if (!own || !heatmap.placeOf(event) || event.deltaY === 0) return;
      event.preventDefault();
      const { query, key } = heatmap.cellAt(event);
      const at = { query: query / heatmap.map.rows, key: key / heatmap.map.columns };
      heatmap.onWindow(zoomed(heatmap.map, event.deltaY < 0 ? STEP : 1 / STEP, at));
    },
    { passive: false },
  );
}

/** The rows and columns between where the drag began and where it is. */
function framed(heatmap, start, event) {
  const { map } = heatmap;
  const at = heatmap.cellAt(event);
  const span = (a, b, length) =>
    [Math.min(a, b), Math.max(a, b)].map((cell) => Math.min(length - 1, Math.max(0, Math.floor(cell))));
  return {
    query: span(start.query, at.query, map.rows),
    key: span(start.key, at.key, map.columns),
  };
}
