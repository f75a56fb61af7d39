/** From what is chosen to what is shown: load what is needed, and put it into one scene. */

import { difference } from "./difference.js";
import { SourceError } from "./errors.js";
import { look } from "./lens.js";
import { Pane } from "./pane.js";
import { explain } from "./scores.js";
import { ofPane, panesOf, runKey } from "./state.js";

/** @returns a scene: panes, steps, scale and the rest that the views draw from. */
export async function compose(state, catalog) {
  const panes = panesOf(state).map((number) => new Pane(catalog.source, number, wanted(number, state, catalog)));
  await Promise.all(panes.map((pane) => chooseMap(pane, state, catalog)));
  const [first] = panes;
  for (const pane of panes.slice(1)) {
    if (pane.entries.length && first.entry) {
      pane.choose(pane.entries, pane.wanted.layer ?? first.entry.tag, first.place);
    }
  }
  const found = panes.filter((pane) => pane.entry);
  const moving = found.filter((pane) => pane.wanted.step === null);
  const steps = [...new Set(moving.flatMap((pane) => pane.entry.steps))].sort((a, b) => a - b);
  const step = state.step === null ? steps.at(-1) : nearest(steps, state.step);
  await Promise.all(
    found.map((pane) => pane.load(step, state.sample, catalog.versionOf(pane.run))),
  );
  for (const pane of found.filter(({ whole }) => whole)) pane.map = look(pane.whole, state);
  const scoreNames = [...new Set(found.flatMap((pane) => pane.scoreNames()))];
  const score = scoreNames.includes(state.score) ? state.score : (scoreNames[0] ?? null);
  const view = state.view === "image" && !first.whole?.image ? "heads" : state.view;
  return {
    panes,
    shown: [...panes, ...between(state, panes, view)],
    steps,
    step,
    score,
    scoreNames,
    scoreTitle: explain(score),
    order: state.order,
    head: state.head,
    query: state.query,
    top: state.top,
    over: state.over,
    hide: state.hide,
    text: state.text,
    hasSteps: catalog.source.grows || found.some((pane) => pane.entry.steps.length > 1 || pane.entry.steps[0] > 0),
    find: state.find.trim().toLowerCase(),
    view,
    notes: catalog.source.about?.notes ?? [],
    scale: {
      relative: state.scale,
      curve: state.curve,
      largest: Math.max(0, ...found.map((pane) => pane.largest())),
      maps: found.flatMap(({ map }) => (map ? [map] : [])), // they share each head's scale
    },
    headOf: (map) => headOf(state.head, map),
  };
}

function wanted(number, state, catalog) {
  const own = { layer: state[ofPane("layer", number)], run: state[runKey(number)] ?? catalog.latest() };
  const fixed = (name) => (number === 1 ? null : state[ofPane(name, number)]);
  return { ...own, step: fixed("step"), sample: fixed("sample") };
}

async function chooseMap(pane, state, catalog) {
  try {
    pane.choose(await catalog.mapsOf(pane.run), pane.wanted.layer ?? state.layer, 0);
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    pane.message = error.message;
  }
}

/** The pane of the first map minus the second, where that is wanted. */
function between(state, [first, second], view) {
  if (!state.diff || !first?.map || !second?.map) return [];
  const pane = Object.create(first);
  Object.assign(pane, { number: 0, key: "A − B", run: `${first.key} − ${second.key}`, message: null });
  Object.assign(pane, { isDifference: true, other: second, scoreOf: () => undefined });
  pane.map = view === "overview" ? null : difference(first.map, second.map);
  if (view === "overview") pane.message = "The difference is shown for one layer: choose Heads, Map or Lines.";
  else if (!pane.map) {
    const size = ({ map }) => `${map.rows} × ${map.columns}`;
    pane.message = `No difference: A is ${size(first)} and B is ${size(second)}.`;
  }
  return [pane];
}

/** The head of a view that shows one: the chosen one as far as the map has it. */
function headOf(head, map) {
  if (head === "mean") return "mean";
  return head === "all" ? 0 : Math.min(head, map.headCount - 1);
}

function nearest(steps, step) {
  return steps.filter((one) => one <= step).at(-1) ?? steps[0];
}
