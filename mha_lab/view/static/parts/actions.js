/** Everything that a button or a key does. */

import { CURVES, OTHERS, ofPane, panesOf, runKey } from "../data/state.js";
import { containing, zoomed } from "../data/window.js";
import { PALETTES } from "../draw/palette.js";
import * as focus from "./focus.js";
import { copyLink, downloadShown } from "./sharing.js";

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
        set({ head, over: [], view: ["overview", "image"].includes(page.state.view) ? page.state.view : "heads" });
        return;
      }
      const chosen = head === "mean" ? head : Number(head);
      if (chosen !== "mean") page.lastHead = chosen;
      set({ head: chosen, over: [], view: page.state.view === "lines" ? "lines" : "map" });
    },
    moveHead(by) {
      const map = page.scene?.panes[0].whole;
      if (!map) return;
      const heads = ["all", ...Array.from({ length: map.headCount }, (_, i) => i)];
      if (map.headCount > 1) heads.push("mean");
      actions.head(next(heads, page.state.head, by));
    },
    /** A head in the navigator or among the thumbnails; null leaves the view as it is. */
    choose(tag, head, pane = null) {
      const layer = pane?.number > 1 ? { [ofPane("layer", pane.number)]: tag } : { layer: tag, layer2: null };
      if (head === null) {
        set({ ...layer, view: page.state.view === "overview" ? "heads" : page.state.view });
        return;
      }
      page.lastHead = head;
      set({ ...layer, head, over: [], view: page.state.view === "lines" ? "lines" : "map" });
    },
    layer(by) {
      const pane = page.scene?.panes[0];
      if (!pane?.entry) return;
      const place = Math.min(Math.max(pane.place + by, 0), pane.entries.length - 1);
      set({ layer: pane.entries[place].tag, layer2: null });
    },
    sample(by) {
      const count = page.scene?.panes[0].whole?.samples.length ?? 1;
      set({ sample: (page.scene.panes[0].sample + by + count) % count });
    },
    /** One more pane: the next run, or where there is one run its next sample or first step. */
    compare() {
      const pane = OTHERS.find((number) => page.state[runKey(number)] === null);
      const [first] = page.scene?.panes ?? [];
      if (!pane || !first) return;
      const runs = page.runs().map(({ run }) => run);
      const free = runs.filter((run) => !page.scene.panes.some((one) => one.run === run));
      const run = free.find((one) => runs.indexOf(one) > runs.indexOf(first.run)) ?? free[0] ?? first.run;
      const samples = first.whole?.samples.length ?? 1;
      const own = run !== first.run ? {}
        : samples > 1 ? { [ofPane("sample", pane)]: (first.sample + pane - 1) % samples }
          : { [ofPane("step", pane)]: first.entry?.steps[0] ?? null };
      set({ [runKey(pane)]: run, ...own });
    },
    removePane(pane) {
      const own = ["layer", "step", "sample"].map((name) => [ofPane(name, pane), null]);
      const left = panesOf(page.state).length - 1;
      set({ [runKey(pane)]: null, ...Object.fromEntries(own), ...(left < 2 ? { diff: false } : {}) });
    },
    /** Add the second pane, or take all others away. */
    toggleCompare() {
      const others = panesOf(page.state).filter((pane) => pane > 1);
      if (others.length) for (const pane of others) actions.removePane(pane);
      else actions.compare();
    },
    difference() {
      if (panesOf(page.state).length > 1) set({ diff: !page.state.diff });
    },
    /** The window: after zooming or moving on a map, by keys, or away with it. */
    move: ({ rows, cols }) => set({ rows, cols }),
    zoom(by) {
      const map = page.scene?.panes[0].map;
      if (!map) return;
      const { query, key } = page.place ?? { query: (map.rows - 1) / 2, key: (map.columns - 1) / 2 };
      actions.move(zoomed(map, by > 0 ? 1.5 : 1 / 1.5, { query: (query + 0.5) / map.rows, key: (key + 0.5) / map.columns }));
    },
    whole: () => set({ rows: null, cols: null }),
    text: () => set({ text: !page.state.text }),
    hide: () => focus.toHide(page),
    find: () => focus.toFind(page),
    step: (by) => page.timeline.move(by),
    play: () => page.timeline.toggle(),
    live: () => set({ live: !page.state.live }),
    scale: () => set({ scale: next(["row", "head", "global"], page.state.scale) }),
    curve: () => set({ curve: next(CURVES, page.state.curve) }),
    palette: () => set({ palette: next(PALETTES, page.state.palette) }),
    theme: () => set({ theme: next(["auto", "light", "dark"], page.state.theme) }),
    filter: () => focus.toFilter(page),
    menu: () => focus.toMenu(page),
    copyLink: () => copyLink(page),
    download: (kind) => downloadShown(page, kind),
    help: () => page.help.toggle(),
    crosshair: (event) => page.moveCrosshair(event.key),
    /** The lines of one query, from a cell of its row. */
    linesOf: ({ query }) => set({ query, view: "lines" }),
    pin: ({ query, keep = false }) => set({ query: page.state.query === query && !keep ? null : query }),
    /** Keep a query, and bring it into the window. */
    follow({ query, keep = false }) {
      const map = page.scene?.panes[0].map;
      const isWindow = page.state.rows || page.state.cols;
      actions.pin({ query, keep });
      if (isWindow && map) actions.move(containing(map, "query", query));
    },
    escape() {
      if (focus.leave(page)) return;
      if (page.state.rows || page.state.cols) {
        actions.whole();
        return;
      }
      if (page.state.query !== null) set({ query: null });
      else if (page.state.over.length) set({ over: [] });
      else if (["map", "lines"].includes(page.state.view)) actions.head("all");
    },
  };
  return actions;
}
