/** What the panes show: a run each, and for those beside the first a step and a sample of their own. */

import { OTHERS, ofPane, panesOf, runKey } from "../data/state.js";
import { chooser, el, icon } from "../draw/dom.js";
import { count, visible } from "../draw/format.js";

const SAME = "same";

export class RunChooser {
  constructor({ set, compare, removePane }) {
    this.set = set;
    this.rows = [1, ...OTHERS].map((pane) => this.makeRow(pane, removePane));
    this.add = el("button.compare", { type: "button", title: "Look at another run, step or sample beside (c)", onclick: compare }, icon("compare"), "Compare");
    this.difference = el("input", { type: "checkbox", onchange: () => set({ diff: this.difference.checked }) });
    this.differenceLabel = el("label.check", {}, this.difference, "Difference A − B");
    this.title = el("h2", {}, "Run");
    this.node = el("section.runs", { "aria-label": "Runs" }, this.title, ...this.rows.map(({ node }) => node), this.differenceLabel, this.add);
  }

  makeRow(pane, removePane) {
    const letter = "ABCD"[pane - 1];
    const name = pane === 1 ? "Run" : `Run of pane ${letter}`;
    const run = chooser(name, (value) => this.set(pane === 1 ? { run: value } : { [runKey(pane)]: value, [ofPane("layer", pane)]: null }));
    const choose = (what) => chooser(`${what} of pane ${letter}`, (value) =>
      this.set({ [ofPane(what.toLowerCase(), pane)]: value === SAME ? null : Number(value) }));
    const [step, sample] = [choose("Step"), choose("Sample")];
    const badge = el("span.badge", { "data-pane": pane }, letter);
    const remove = pane === 1 ? null : el(
      "button.icon-button", { type: "button", "aria-label": `Remove pane ${letter}`, title: `Remove pane ${letter}`, onclick: () => removePane(pane) },
      icon("close"),
    );
    const own = el("div.row.own", {}, step.node, sample.node);
    const node = el("div.pane-row", {}, el("div.row", {}, badge, run.node, remove), ...(pane === 1 ? [] : [own]));
    return { pane, node, run, step, sample, own, badge };
  }

  draw(runs, scene, state) {
    const chosen = panesOf(state);
    const options = runs.map(({ run }) => ({ value: run, text: visible(run) }));
    const samples = scene.panes[0].whole?.samples ?? [];
    for (const row of this.rows) {
      const pane = scene.panes.find(({ number }) => number === row.pane);
      row.node.hidden = !pane;
      if (!pane) continue;
      const known = runs.some(({ run }) => run === pane.run);
      row.run.show(known ? options : [...options, { value: pane.run, text: `${visible(pane.run)} (gone)` }], pane.run);
      if (row.pane === 1) continue;
      const steps = pane.entry?.steps ?? [];
      row.step.show([{ value: SAME, text: "same step" }, ...steps.map((step) => ({ value: String(step), text: `step ${count(step)}` }))], String(state[ofPane("step", row.pane)] ?? SAME));
      row.sample.show([{ value: SAME, text: "same sample" }, ...samples.map((sample, i) => ({ value: String(i), text: `sample ${sample}` }))], String(state[ofPane("sample", row.pane)] ?? SAME));
      row.step.node.hidden = steps.length < 2;
      row.sample.node.hidden = samples.length < 2;
    }
    const compared = chosen.length > 1;
    this.node.classList.toggle("comparing", compared);
    this.title.textContent = compared ? "Panes" : "Run";
    this.add.hidden = runs.length === 0 || chosen.length > OTHERS.length;
    this.differenceLabel.hidden = !compared;
    this.difference.checked = state.diff;
  }
}
