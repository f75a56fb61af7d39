/** What the person has chosen: one flat object, which also is what stands in the address. */

import { PALETTES } from "./palette.js";

export const VIEWS = ["heads", "map", "lines", "overview"];
const anything = (text) => text;
const oneOf = (values) => (text) => (values.includes(text) ? text : undefined);
const wholeNumber = (text) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined);
const flag = (text) => ({ 1: true, 0: false })[text];

/** Each choice: its default, and how it is read from the address (undefined: not understood). */
const CHOICES = {
  run: [null, anything],
  vs: [null, anything], // the run beside it, or none
  layer: [null, anything], // a tag
  layer2: [null, anything], // the other run's, where it shall be another one
  head: ["all", (text) => (["all", "mean"].includes(text) ? text : wholeNumber(text))],
  sample: [0, wholeNumber],
  step: [null, wholeNumber], // none: the last one, and follow it
  view: ["heads", oneOf(VIEWS)],
  scale: ["global", oneOf(["row", "head", "global"])],
  log: [false, flag],
  palette: ["ember", oneOf(PALETTES)],
  theme: ["auto", oneOf(["auto", "light", "dark"])],
  score: [null, anything],
  order: ["model", oneOf(["model", "high", "low"])],
  query: [null, wholeNumber], // the query whose lines are drawn
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
  for (const [name, [value]] of Object.entries(CHOICES)) {
    if (state[name] === value || state[name] === null) continue;
    pairs.push([name, typeof state[name] === "boolean" ? String(Number(state[name])) : String(state[name])]);
  }
  return pairs;
}
