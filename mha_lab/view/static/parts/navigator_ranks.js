/** The navigator by score: every head of every layer in a row of its own, with a bar. */

import { el } from "../draw/dom.js";
import { headName, score, visible, withoutFiller } from "../draw/format.js";
import { css } from "../draw/palette.js";
import { levelOf } from "./score_level.js";

/** @returns {{signature, build, paint}}: rows stay, and are told anew which head they stand for. */
export function ranks({ panes, rankings, scene, table, range, choose, matches }) {
  const sign = scene.order === "high" ? -1 : 1;
  const key = ({ value }) => (value === undefined || value === null ? Infinity : sign * value);
  const all = panes.flatMap((pane, i) => rankings[i].map((one) => ({ ...one, pane })));
  const rows = all.sort((a, b) => key(a) - key(b) || 0).filter(({ tag }) => matches(tag));
  const [low, high] = range;
  return {
    signature: `ranks ${rows.length}`,
    build: () => rows.map((_, i) => row(i)),
    paint(nodes) {
      nodes.forEach((node, i) => {
        const { pane, tag, head, value } = rows[i];
        const name = headName(pane.headsOf(tag), head);
        const [place, label, number, bar] = node.children;
        place.textContent = i + 1;
        label.firstChild.textContent = `${panes.length > 1 ? `${pane.key} ` : ""}${withoutFiller(visible(pane.shortName(tag)))}`;
        label.lastChild.textContent = `\u00a0· ${name.replace("head ", "")}`;
        number.textContent = score(value);
        bar.firstChild.style.width = `${high > low ? (100 * ((value ?? low) - low)) / (high - low) : 100}%`;
        bar.firstChild.style.background = css(table, levelOf(value ?? low, range));
        node.title = visible(tag);
        node.classList.toggle("chosen", tag === pane.entry.tag && head === scene.head);
        node.onclick = () => choose(tag, head, pane);
      });
    },
  };
}

function row(i) {
  return el(
    "button.rank-row", { type: "button", "data-head": i },
    el("span.place"), el("span.name", {}, el("span.layer"), el("span.head")), el("span.value"),
    el("span.bar", {}, el("i")),
  );
}
