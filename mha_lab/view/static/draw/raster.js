/** Small pictures drawn large and sharp, and the bar of colours. */

import { sized } from "./dom.js";
import { css } from "./palette.js";

const scratch = document.createElement("canvas");
const enlarged = document.createElement("canvas");

/** Draw a picture into a box, its pixels sharp: enlarged by a whole number, then made to fit. */
export function drawPicture(context, image, x, y, width, height) {
  fit(scratch, image.width, image.height); // ImageData covers all of it
  scratch.getContext("2d").putImageData(image, 0, 0);
  const ratio = window.devicePixelRatio || 1;
  const times = Math.max(1, Math.ceil((width * ratio) / image.width - 0.001));
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = "high";
  if (times === 1) {
    context.drawImage(scratch, x, y, width, height);
    return;
  }
  const isNew = fit(enlarged, image.width * times, image.height * times);
  const large = enlarged.getContext("2d");
  if (!isNew) large.clearRect(0, 0, enlarged.width, enlarged.height);
  large.imageSmoothingEnabled = false;
  large.drawImage(scratch, 0, 0, enlarged.width, enlarged.height);
  context.drawImage(enlarged, x, y, width, height);
}

/** How large a map is, as large as fits into a box of size × size; [0, 0] where it has no weights. */
export function fitted({ rows, columns }, size) {
  const part = rows * columns === 0 ? 0 : Math.min(size / columns, size / rows);
  return [columns * part, rows * part];
}

/** Give a canvas a size; setting one empties it and takes time, so only where it is another. */
function fit(canvas, width, height) {
  if (canvas.width === width && canvas.height === height) return false;
  canvas.width = width;
  canvas.height = height;
  return true;
}

/** The colours of the page that canvases need, read from the style sheet. */
export function readTheme(node) {
  const style = getComputedStyle(node);
  const names = ["page", "panel", "ink", "muted", "rule", "blocked", "accent"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

const legends = new WeakMap(); // canvas to the table that it shows

/** A bar from the lowest to the highest colour. */
export function drawLegend(canvas, table, width, height) {
  if (legends.get(canvas) === table) return;
  legends.set(canvas, table);
  const context = sized(canvas, width, height);
  for (let x = 0; x < width; x += 1) {
    context.fillStyle = css(table, Math.round((255 * x) / (width - 1)));
    context.fillRect(x, 0, 1.5, height);
  }
}
