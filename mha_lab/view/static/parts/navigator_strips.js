/** The navigator in the model's order: a layer's name, and under it a strip of cells for each pane. */

import { el } from "../draw/dom.js";
import { fullHeadName, score, visible, words } from "../draw/format.js";
import { css } from "../draw/palette.js";
import { levelOf } from "./score_level.js";

/** @returns {{signature, build, paint}}: nodes are made anew only when the signature changes. */
export function strips({ panes, rankings, scene, table, range, choose, matches }) {
  const [first] = panes;
  const entries = (first?.entries ?? []).filter((entry) => matches(entry.tag));
  const cells = entries.map((entry) => panes.map((pane, i) => {
    const own = pane.entries.some((one) => one.tag === entry.tag)
      ? entry.tag : i > 0 ? pane.entries[first.entries.indexOf(entry)]?.tag : null;
    return rankings[i].filter((one) => one.tag === own).map((one) => ({ ...one, pane }));
  }));
  const flat = cells.flat(2);
  const current = first?.entry.tag;
  return {
    signature: JSON.stringify([
      "strips", current, panes.map(({ key, run }) => [key, run]), entries.map(({ tag }) => tag),
      flat.map(({ pane, tag, head }) => [pane.key, tag, head]),
    ]),
    build: () => entries.map((entry, place) => {
      const isCurrent = entry.tag === current;
      const name = el(
        "button.layer", {
          type: "button", title: visible(entry.tag), "aria-current": String(isCurrent),
          onclick: () => choose(entry.tag, null),
        },
        visible(first.shortName(entry.tag)),
      );
      const rows = cells[place].map((row) => el("div.strip", {}, ...row.map((one) => cell(one, choose))));
      return el(isCurrent ? "div.entry.current" : "div.entry", {}, name, ...rows);
    }),
    paint(nodes) {
      nodes.forEach((node, i) => {
        const { pane, tag, head, value } = flat[i];
        const name = fullHeadName(pane.headsOf(tag), head);
        node.title = `${panes.length > 1 ? `${pane.key} · ` : ""}${name}: ${score(value)}`;
        node.setAttribute("aria-label", `${name}, ${words(scene.score ?? "")} ${score(value)}`);
        node.classList.toggle("chosen", tag === pane.entry.tag && head === scene.head);
        node.style.background = value === undefined || value === null ? "" : css(table, levelOf(value, range));
      });
    },
  };
}

function cell({ pane, tag, head }, choose) {
  return el("button.cell", { type: "button", "data-head": head, onclick: () => choose(tag, head, pane) });
}
