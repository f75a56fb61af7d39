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
  const times = (to, from) => Math.max(1, Math.ceil((to * ratio) / from - 0.001));
  const [across, down] = [times(width, image.width), times(height, image.height)];
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = "high";
  if (across === 1 && down === 1) {
    context.drawImage(scratch, x, y, width, height);
    return;
  }
  const isNew = fit(enlarged, image.width * across, image.height * down);
  const large = enlarged.getContext("2d");
  if (!isNew) large.clearRect(0, 0, enlarged.width, enlarged.height);
  large.imageSmoothingEnabled = false;
  large.drawImage(scratch, 0, 0, enlarged.width, enlarged.height);
  context.drawImage(enlarged, x, y, width, height);
}

export const NARROWEST = 6; // a map is drawn no more than so many times as long as it is wide

/** How large a map is, as large as fits into a box of size × size; [0, 0] where it has no weights. */
export function fitted({ rows, columns }, size) {
  if (rows * columns === 0) return [0, 0];
  const [part, least] = [Math.min(size / columns, size / rows), size / NARROWEST];
  return [Math.max(columns * part, least), Math.max(rows * part, least)];
}

const STRETCHED = 24; // pixels: a cell that is as large is never stretched

/** The width and height of a cell that is square, unless its map would be a thread then. */
export function stretched({ rows, columns }, cell) {
  const least = (Math.max(rows, columns) * cell) / NARROWEST;
  const side = (count) => Math.max(cell, Math.min(STRETCHED, least / Math.max(count, 1)));
  return { wide: side(columns), high: side(rows) };
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
