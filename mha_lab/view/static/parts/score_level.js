/** The place on the table of colours of a score among all scores. */

import { LEVELS } from "../draw/palette.js";

export function levelOf(value, [low, high]) {
  const part = high > low ? (value - low) / (high - low) : 0.5;
  // The lowest colours are the page's own; a cell must be seen.
  return Math.round((0.08 + 0.92 * part) * (LEVELS - 1));
}
