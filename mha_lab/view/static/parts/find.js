/** Search for a token: matches are marked on every map; Enter goes to the next one. */

import { el } from "../draw/dom.js";
import { found } from "../draw/format.js";

export class Find {
  /** @param actions: set, and follow({query}), which brings a query into view. */
  constructor({ set, follow }) {
    this.follow = follow;
    this.input = el("input.find", {
      type: "search", placeholder: "Find a token", "aria-label": "Find a token", title: "Find a token (t); Enter: the next one",
      oninput: () => set({ find: this.input.value }),
      onkeydown: (event) => event.key === "Enter" && this.next(event.shiftKey ? -1 : 1),
    });
    this.count = el("span.caption", { role: "status" });
    this.node = el("span.finder", {}, this.input, this.count);
  }

  draw(scene, state) {
    const map = scene.panes[0].whole;
    this.node.hidden = !map?.queryTokens && !map?.keyTokens;
    if (document.activeElement !== this.input) this.input.value = state.find;
    const all = (tokens) => (tokens ?? []).flatMap((_, i) => (found(tokens, i, scene.find) ? [i] : []));
    this.matches = map ? all(map.queryTokens) : [];
    const keys = map && scene.find ? all(map.keyTokens).length : 0;
    const many = this.matches.length || keys;
    this.count.textContent = scene.find ? (many ? `${many} found` : "not found") : "";
    this.query = scene.query;
  }

  next(by) {
    if (!this.matches?.length) return;
    const here = this.matches.findIndex((i) => i >= (this.query ?? -1));
    const exact = this.matches[here] === this.query;
    const place = here < 0 ? 0 : exact || by < 0 ? here + by : here;
    this.follow({ query: this.matches.at(place % this.matches.length), keep: true });
  }
}
