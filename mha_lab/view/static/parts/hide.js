/** Leave tokens out: special ones, padding, or any; each row is then scaled to what it summed to. */

import { el } from "../draw/dom.js";
import { count, shorten, visible } from "../draw/format.js";

const MOST = 200; // kinds of tokens in the list
const SPECIAL = /^(?:\[.*\]|<.*>|<\|.*\|>|\s*|[^\p{L}\p{N}]+)$/u; // [CLS], <s>, padding, punctuation

export class Hide {
  constructor({ set }) {
    this.set = set;
    this.summary = el("summary.text-button", { title: "Leave tokens out; rows are scaled anew (h)" }, "Hide tokens");
    this.list = el("div.checks", { role: "group", "aria-label": "Tokens to leave out", tabindex: 0 });
    this.all = el("button.text-button", { type: "button", onclick: () => set({ hide: [] }) }, "Show all");
    this.node = el("details.menu.hide", {}, this.summary, el("div.items", {}, el("p", {}, "Left out, and rows scaled anew:"), this.list, this.all));
    document.addEventListener("pointerdown", (event) => {
      if (!this.node.contains(event.target)) this.node.open = false;
    });
  }

  draw(scene, state) {
    const maps = scene.panes.flatMap(({ whole }) => (whole ? [whole] : []));
    const tokens = maps.flatMap((map) => [...(map.queryTokens ?? []), ...(map.kind === "cross" ? (map.keyTokens ?? []) : [])]);
    this.node.hidden = tokens.length === 0 || maps.some(({ image }) => image);
    this.summary.textContent = state.hide.length ? `${state.hide.length} hidden` : "Hide tokens";
    this.summary.classList.toggle("active", state.hide.length > 0);
    this.all.disabled = state.hide.length === 0;
    const counts = new Map();
    for (const token of tokens) counts.set(token, (counts.get(token) ?? 0) + 1);
    for (const token of state.hide) if (!counts.has(token)) counts.set(token, 0);
    const kinds = [...counts].sort(([a, n], [b, m]) => SPECIAL.test(b) - SPECIAL.test(a) || m - n).slice(0, MOST);
    const signature = JSON.stringify([kinds, state.hide]);
    if (signature === this.signature) return;
    this.signature = signature;
    const focused = [...this.list.querySelectorAll("input")].findIndex((one) => one === document.activeElement);
    this.list.replaceChildren(
      ...kinds.map(([token, n]) => {
        const box = el("input", { type: "checkbox", onchange: () => this.toggle(state.hide, token) });
        box.checked = state.hide.includes(token);
        const name = token === "" ? "(padding)" : shorten(visible(token), 30);
        return el("label", {}, box, el("bdi", {}, name), el("span.caption", {}, count(n)));
      }),
    );
    if (focused >= 0) this.list.querySelectorAll("input")[focused]?.focus();
  }

  toggle(hide, token) {
    this.set({ hide: hide.includes(token) ? hide.filter((one) => one !== token) : [...hide, token] });
  }
}
