/** A head of the overview: its thumbnail, its name and its score, as a button. */

import { el } from "../draw/dom.js";
import { headName, visible, withoutFiller } from "../draw/format.js";

export function makeTile(pane, { tag, head }, { byLayer, choose }) {
  const name = headName(pane.headsOf(tag), head);
  const canvas = el("canvas", { "aria-hidden": "true" });
  const value = el("span.score");
  const layer = visible(pane.shortName(tag));
  const place = byLayer ? null : el("span.place");
  const caption = byLayer
    ? [el("span", {}, name.replace("head ", ""))]
    : [place, el("span.layer", {}, ...breakable(`${withoutFiller(layer)} · ${name.replace("head ", "")}`))];
  const node = el(
    "button.thumbnail",
    { type: "button", title: `${layer}, ${name}`, onclick: () => choose(tag, head) },
    el("span.picture", {}, canvas),
    el("span.caption", {}, ...caption, value),
  );
  return { node, canvas, tag, head, place, score: value, visible: false, drawn: null };
}

/** A module's path that may go on in the next line after a dot or an underscore, not within a word. */
function breakable(text) {
  return text.split(/(?<=[._])(?=\w)/).flatMap((piece, i) => (i === 0 ? [piece] : [el("wbr"), piece]));
}
