/** A head's picture in a small box. */

import { pixelOf, pixels, picture } from "./colouring.js";
import { sized } from "./dom.js";
import { drawPicture, fitted } from "./raster.js";
import { placeAt, shrunk } from "./shrunk.js";

/** Draw a head into a canvas as large as fits into a box of size × size. */
export function drawThumbnail(canvas, map, head, { scale, table }, size) {
  const [width, height] = fitted(map, size);
  if (width === 0) return;
  const ratio = window.devicePixelRatio || 1;
  const isSmaller = width * ratio < map.columns && height * ratio < map.rows;
  const context = sized(canvas, width, height, !isSmaller);
  if (!isSmaller) {
    drawPicture(context, picture(map, head, scale, table), 0, 0, width, height);
    return;
  }
  const image = new ImageData(canvas.width, canvas.height);
  const [data, colours] = [new Uint32Array(image.data.buffer), pixels(table)];
  const found = shrunk(map, head, scale, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 1) data[i] = pixelOf(colours, placeAt(found[i]));
  context.putImageData(image, 0, 0); // covers all of it
}
