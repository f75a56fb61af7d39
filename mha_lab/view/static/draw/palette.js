/**
 * Colour maps, computed. Each is a path through OKLCH (Björn Ottosson, 2020) on which lightness
 * changes evenly, so that equal differences of weight look equally different, in grey too. No
 * weight has the colour of the page, on a light page as on a dark one.
 */

const PATHS = {
  ember: { hues: [280, 325, 365, 400, 455], chroma: 0.17 },
  lagoon: { hues: [292, 262, 205, 160, 108], chroma: 0.13 },
  ink: { hues: [262, 262], chroma: 0.012 },
};
/** Negative weights, of the rare maps that have them, walk another path. */
const NEGATIVE = { hues: [250, 235], chroma: 0.14 };
/** Of differences, more is red and less is blue; equal has the page's colour. */
const MORE = { hues: [15, 40], chroma: 0.18 };

export const PALETTES = Object.keys(PATHS);
export const LEVELS = 256;
const DARK = { low: 0.19, high: 0.97 };
const LIGHT = { low: 0.99, high: 0.22 };

/** 2 × 256 colours (positive, then negative) as [r, g, b, ...], for a light or a dark page. */
export function colours(name, dark) {
  const key = `${name} ${dark}`;
  if (!made.has(key)) made.set(key, walk(name, dark));
  return made.get(key);
}

const made = new Map();

function walk(name, dark) {
  const table = new Uint8ClampedArray(2 * LEVELS * 3);
  const positive = name === "difference" ? MORE : (PATHS[name] ?? PATHS.ember);
  [positive, NEGATIVE].forEach((path, which) => {
    for (let i = 0; i < LEVELS; i += 1) {
      table.set(colourAt(path, i / (LEVELS - 1), dark), 3 * (which * LEVELS + i));
    }
  });
  return table;
}

/** A colour for each of many heads that lie over each other, as unlike its neighbours as can be. */
export function headColour(i, dark) {
  return `hsl(${Math.round(265 + i * 137.5) % 360} ${dark ? "70% 68%" : "62% 42%"})`;
}

export function css(table, level) {
  return `rgb(${table[3 * level]} ${table[3 * level + 1]} ${table[3 * level + 2]})`;
}

/** Black or white, whichever can be read on the colour. */
export function inkOn(table, level) {
  const [r, g, b] = [...table.subarray(3 * level, 3 * level + 3)].map((part) => {
    const x = part / 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  });
  // Relative luminance as WCAG has it: both inks have the same contrast at 0.179.
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

function colourAt(path, t, dark) {
  const ends = dark ? DARK : LIGHT;
  const lightness = ends.low + (ends.high - ends.low) * t;
  const along = dark ? t : 1 - t; // on a light page the path is walked backwards: dark is much
  const place = along * (path.hues.length - 1);
  const i = Math.min(Math.floor(place), path.hues.length - 2);
  const hue = path.hues[i] + (path.hues[i + 1] - path.hues[i]) * (place - i);
  const chroma = path.chroma * Math.sin(Math.PI * Math.min(1, 0.06 + 0.9 * t)) ** 0.6;
  return fitted(lightness, chroma, (hue * Math.PI) / 180);
}

/** The colour with as much of the chroma as a screen can show. */
function fitted(lightness, chroma, hue) {
  let [none, all] = [0, chroma];
  let best = toLinear(lightness, 0, hue);
  const whole = toLinear(lightness, chroma, hue);
  if (inside(whole)) best = whole;
  else {
    for (let i = 0; i < 12; i += 1) {
      const middle = (none + all) / 2;
      const colour = toLinear(lightness, middle, hue);
      if (inside(colour)) [none, best] = [middle, colour];
      else all = middle;
    }
  }
  return best.map((x) => 255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
}

function inside(colour) {
  return colour.every((x) => x >= -1e-4 && x <= 1.0001);
}

function toLinear(lightness, chroma, hue) {
  const [a, b] = [chroma * Math.cos(hue), chroma * Math.sin(hue)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}
