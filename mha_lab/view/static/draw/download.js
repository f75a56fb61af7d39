/** Files of what is shown: a picture (PNG, SVG) or the numbers (CSV). */

import { look } from "../data/lens.js";
import { csv } from "./csv.js";
import { figure } from "./figure.js";
import { canvasOf } from "./figure_parts.js";
import { fileName, headName } from "./format.js";

const PIXELS_PER_UNIT = 2;
const [LONGEST, MOST] = [16000, 1.6e8]; // pixels of a side and of all that every browser can draw
const FEWEST = 0.25; // pixels a unit; below, nothing could be read

export async function download(kind, scene) {
  const shown = scene.shown.filter((pane) => pane.map);
  if (shown.length === 0) return;
  const blob = kind === "csv" ? new Blob([csv(scene, shown)], { type: "text/csv" }) : await drawn(kind, scene, shown);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = fileName(nameParts(scene), kind);
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function nameParts(scene) {
  const panes = scene.panes.filter((pane) => pane.map);
  const [pane] = panes;
  const what = scene.view === "overview" ? "all-layers" : pane.entry.name;
  const head = ["map", "lines"].includes(scene.view) ? headName(pane.map, scene.headOf(pane.map)) : "";
  return ["attention", panes.map(({ run }) => run).join("-vs-"), what, head, `step${pane.step}`];
}

async function drawn(kind, scene, panes) {
  const overview = new Map();
  if (scene.view === "overview") {
    await Promise.all(panes.map(async (pane) => overview.set(pane, await allMaps(pane, scene))));
  }
  const root = figure(scene, overview);
  const images = [...root.querySelectorAll("image")];
  if (kind === "png") return raster(root, images);
  for (const image of images) image.setAttribute("href", canvasOf(image).toDataURL());
  return asSvg(root);
}

async function allMaps(pane, scene) {
  const maps = await Promise.allSettled(
    pane.entries.map((entry) => pane.source.map(pane.run, entry, pane.stepOf(entry), pane.sample)),
  );
  return new Map(pane.entries.map((entry, i) => [entry.tag, maps[i].value && look(maps[i].value, { hide: scene.hide })]));
}

function asSvg(root) {
  return new Blob([new XMLSerializer().serializeToString(root)], { type: "image/svg+xml" });
}

/** Draw the figure, then its maps onto it: as images within it, hundreds would take seconds. */
async function raster(root, images) {
  const [width, height] = ["width", "height"].map((name) => Number(root.getAttribute(name)));
  const scale = Math.min(PIXELS_PER_UNIT, LONGEST / Math.max(width, height), Math.sqrt(MOST / (width * height)));
  if (scale < FEWEST) {
    throw new Error("it would be too large for a picture; save it as SVG, or choose fewer layers");
  }
  const places = images.map((image) => ({ ...placeOf(image), canvas: canvasOf(image) }));
  for (const image of images) image.remove();
  const picture = new Image();
  picture.src = URL.createObjectURL(asSvg(root));
  await picture.decode();
  URL.revokeObjectURL(picture.src);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(scale * width);
  canvas.height = Math.round(scale * height);
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  context.scale(scale, scale);
  context.imageSmoothingEnabled = false;
  for (const { canvas: map, x, y, w, h } of places) context.drawImage(map, x, y, w, h);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the browser has no memory for it; save it as SVG"))), "image/png");
  });
}

/** Where an image lies in the figure: the groups around it are only moved. */
function placeOf(image) {
  const place = { x: 0, y: 0, w: Number(image.getAttribute("width")), h: Number(image.getAttribute("height")) };
  for (let node = image.parentNode; node; node = node.parentNode) {
    const [x, y] = node.getAttribute?.("transform")?.match(/translate\(([\d.]+) ([\d.]+)\)/)?.slice(1).map(Number) ?? [0, 0];
    place.x += x;
    place.y += y;
  }
  return place;
}
