/** Everything that a button or a key does. */

import { CURVES } from "../data/state.js";
import { PALETTES } from "../draw/palette.js";

/**
 * @param page: {state, scene, timeline, controls, navigator, help, set, ...}; read at call time.
 */
export function makeActions(page) {
  const { set } = page;
  const next = (values, value, by = 1) =>
    values[(values.indexOf(value) + by + values.length) % values.length];

  const actions = {
    set,
    view(view) {
      const { head } = page.state;
      if (["map", "lines"].includes(view)) set({ view, head: head === "all" ? page.lastHead : head });
      else set({ view, head: view === "heads" ? "all" : head });
    },
    /** Show one head, "mean" or "all": in the grid, "all" is all there is. */
    head(head) {
      if (head === "all") {
        set({ head, view: page.state.view === "overview" ? "overview" : "heads" });
        return;
      }
      const chosen = head === "mean" ? head : Number(head);
      if (chosen !== "mean") page.lastHead = chosen;
      set({ head: chosen, view: page.state.view === "lines" ? "lines" : "map" });
    },
    moveHead(by) {
      const map = page.scene?.panes[0].map;
      if (!map) return;
      const heads = ["all", ...Array.from({ length: map.headCount }, (_, i) => i)];
      if (map.headCount > 1) heads.push("mean");
      actions.head(next(heads, page.state.head, by));
    },
    /** A head in the navigator or among the thumbnails; null leaves the view as it is. */
    choose(tag, head, pane = null) {
      const layer = pane?.key === "B" ? { layer2: tag } : { layer: tag, layer2: null };
      if (head === null) {
        set({ ...layer, view: page.state.view === "overview" ? "heads" : page.state.view });
        return;
      }
      page.lastHead = head;
      set({ ...layer, head, view: page.state.view === "lines" ? "lines" : "map" });
    },
    layer(by) {
      const pane = page.scene?.panes[0];
      if (!pane?.entry) return;
      const place = Math.min(Math.max(pane.place + by, 0), pane.entries.length - 1);
      set({ layer: pane.entries[place].tag, layer2: null });
    },
    sample(by) {
      const count = page.scene?.panes[0].map?.samples.length ?? 1;
      set({ sample: (page.scene.panes[0].sample + by + count) % count });
    },
    compare() {
      if (page.state.vs !== null) {
        set({ vs: null, layer2: null });
        return;
      }
      const runs = page.runs().map(({ run }) => run);
      const own = page.scene?.panes[0]?.run;
      if (runs.length) set({ vs: next(runs, own) });
    },
    move: (by) => page.timeline.move(by),
    play: () => page.timeline.toggle(),
    live: () => set({ live: !page.state.live }),
    scale: () => set({ scale: next(["row", "head", "global"], page.state.scale) }),
    curve: () => set({ curve: next(CURVES, page.state.curve) }),
    palette: () => set({ palette: next(PALETTES, page.state.palette) }),
    theme: () => set({ theme: next(["auto", "light", "dark"], page.state.theme) }),
    filter: () => page.focusFilter(),
    menu: () => page.openMenu(),
    copyLink: () => page.copyLink(),
    download: (kind) => page.download(kind),
    help: () => page.help.toggle(),
    crosshair: (event) => page.moveCrosshair(event.key),
    /** The lines of one query, from a cell of its row. */
    linesOf: ({ query }) => set({ query, view: "lines" }),
    pin: ({ query }) => set({ query: page.state.query === query ? null : query }),
    escape() {
      if (page.leaveFilter()) return;
      if (page.state.query !== null && page.state.view === "lines") set({ query: null });
      else if (["map", "lines"].includes(page.state.view)) actions.head("all");
    },
  };
  return actions;
}
