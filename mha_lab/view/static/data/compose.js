/** From what is chosen to what is shown: load what is needed, and put it into one scene. */

import { ServerError } from "./api.js";
import { Pane } from "./pane.js";
import { explain } from "./scores.js";

/** @returns a scene: panes, steps, scale and the rest that the views draw from. */
export async function compose(state, catalog) {
  const run = state.run ?? catalog.latest();
  const panes = [new Pane("A", run)];
  if (state.vs !== null) panes.push(new Pane("B", state.vs));
  await Promise.all(panes.map((pane) => chooseMap(pane, state, catalog)));
  if (panes.length === 2 && panes[1].entries.length && panes[0].entry) {
    const [first, second] = panes;
    second.choose(second.entries, state.layer2 ?? first.entry.tag, first.place);
  }
  const found = panes.filter((pane) => pane.entry);
  const steps = [...new Set(found.flatMap((pane) => pane.entry.steps))].sort((a, b) => a - b);
  const step = state.step === null ? steps.at(-1) : nearest(steps, state.step);
  await Promise.all(
    found.map((pane) => pane.load(step, state.sample, catalog.versionOf(pane.run))),
  );
  const scoreNames = [...new Set(found.flatMap((pane) => pane.scoreNames()))];
  const score = scoreNames.includes(state.score) ? state.score : (scoreNames[0] ?? null);
  return {
    panes,
    steps,
    step,
    score,
    scoreNames,
    scoreTitle: explain(score),
    order: state.order,
    head: state.head,
    query: state.query,
    view: state.view,
    scale: {
      relative: state.scale,
      log: state.log,
      largest: Math.max(0, ...found.map((pane) => pane.largest())),
    },
    headOf: (map) => headOf(state.head, map),
  };
}

async function chooseMap(pane, state, catalog) {
  try {
    const entries = await catalog.mapsOf(pane.run);
    pane.choose(entries, state.layer, 0);
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    pane.message = error.message;
  }
}

/** The head of a view that shows one: the chosen one as far as the map has it. */
function headOf(head, map) {
  if (head === "mean") return "mean";
  return head === "all" ? 0 : Math.min(head, map.headCount - 1);
}

function nearest(steps, wanted) {
  return steps.filter((step) => step <= wanted).at(-1) ?? steps[0];
}
