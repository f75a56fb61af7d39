/** What the person has chosen: one flat object, which also is what stands in the address. */

import { PALETTES } from "../draw/palette.js";

export const VIEWS = ["heads", "map", "lines", "overview", "image"];
export const CURVES = ["linear", "root", "log"];
export const OTHERS = [2, 3, 4]; // the panes beside the first
export const runKey = (pane) => (pane === 1 ? "run" : pane === 2 ? "vs" : `vs${pane}`);
export const ofPane = (name, pane) => (pane === 1 ? name : `${name}${pane}`);

const anything = (text) => text;
const oneOf = (values) => (text) => (values.includes(text) ? text : undefined);
const wholeNumber = (text) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined);
const flag = (text) => ({ 1: true, 0: false })[text];
const span = (text) => {
  const [first, last] = text.match(/^(\d{1,9})-(\d{1,9})$/)?.slice(1).map(Number) ?? [];
  return first <= last ? [first, last] : undefined;
};
const texts = (text) => {
  try {
    const found = JSON.parse(text);
    return Array.isArray(found) ? found.filter((one) => typeof one === "string") : undefined;
  } catch {
    return undefined;
  }
};
const numbers = (text) => (/^\d{1,5}(,\d{1,5})*$/.test(text) ? text.split(",").map(Number) : undefined);

/** Each choice: its default, how it is read from the address (undefined: not understood), and written. */
const CHOICES = {
  run: [null, anything],
  layer: [null, anything], // a tag
  sample: [0, wholeNumber],
  step: [null, wholeNumber], // none: the last one, and follow it
  // The other panes; what is null follows the first pane.
  ...Object.fromEntries(OTHERS.flatMap((pane) => [
    [runKey(pane), [null, anything]],
    [`layer${pane}`, [null, anything]],
    [`sample${pane}`, [null, wholeNumber]],
    [`step${pane}`, [null, wholeNumber]],
  ])),
  diff: [false, flag], // the first pane minus the second
  head: ["all", (text) => (["all", "mean"].includes(text) ? text : wholeNumber(text))],
  view: ["heads", oneOf(VIEWS)],
  scale: ["head", oneOf(["row", "head", "global"])],
  curve: ["root", oneOf(CURVES)],
  palette: ["ember", oneOf(PALETTES)],
  theme: ["auto", oneOf(["auto", "light", "dark"])],
  score: [null, anything],
  order: ["model", oneOf(["model", "high", "low"])],
  query: [null, wholeNumber], // the query that is followed: its lines, its keys in the text
  top: [null, wholeNumber], // lines of so many keys a query
  over: [[], numbers], // heads whose lines lie over each other
  rows: [null, span], // the window: first and last position
  cols: [null, span],
  hide: [[], texts, JSON.stringify], // tokens that are left out
  find: ["", anything],
  text: [true, flag], // the sample's text beside the maps
  speed: [4, (text) => [1, 2, 4, 8, 16].find((speed) => String(speed) === text)],
  live: [true, flag],
};

export function defaults() {
  return Object.fromEntries(Object.entries(CHOICES).map(([name, [value]]) => [name, value]));
}

/** The choices in an address' parameters; what is missing or not understood is the default. */
export function parse(parameters) {
  const state = defaults();
  for (const [name, [, read]] of Object.entries(CHOICES)) {
    const text = parameters.get(name);
    const value = text === null || text === undefined ? undefined : read(text);
    if (value !== undefined) state[name] = value;
  }
  return state;
}

/** [name, text] of every choice that is not the default. */
export function serialise(state) {
  const pairs = [];
  for (const [name, [value, , write]] of Object.entries(CHOICES)) {
    const own = state[name];
    if (own === null || JSON.stringify(own) === JSON.stringify(value)) continue;
    if (write) pairs.push([name, write(own)]);
    else if (Array.isArray(own)) pairs.push([name, own.join(name === "over" ? "," : "-")]);
    else pairs.push([name, typeof own === "boolean" ? String(Number(own)) : String(own)]);
  }
  return pairs;
}

/** The panes that are chosen, by number. */
export function panesOf(state) {
  return [1, ...OTHERS.filter((pane) => state[runKey(pane)] !== null)];
}
