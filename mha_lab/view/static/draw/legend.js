/** What the ends of the colours stand for, in words. */

import { DECADES, tops } from "./colouring.js";
import { weight } from "./format.js";

const POWER = `10⁻${"⁰¹²³⁴⁵"[DECADES]}`;

export function legendTexts({ panes, scale, view, headOf }) {
  const map = panes[0]?.map;
  const isOne = map && ["map", "lines"].includes(view) && scale.relative === "head";
  const top = isOne ? tops(map, headOf(map), scale) : scale.largest;
  const isNumber = isOne || scale.relative === "global";
  const isExceeded = isOne && map.maximum(headOf(map)) > 1.001 * top;
  const high = { row: "row’s largest", head: "large in its head", global: weight(top) }[scale.relative];
  const faint = isNumber ? weight(top / 10 ** DECADES) : `× ${POWER}`;
  return {
    low: scale.curve === "log" ? faint : "0",
    high: isOne ? `${isExceeded ? "≥ " : ""}${weight(top)}` : high,
  };
}
