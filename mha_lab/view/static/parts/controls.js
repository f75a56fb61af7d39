/** What is chosen at the top of the page: runs, view, layer, head, sample, and how it is drawn. */

import { chooser, el, icon, segmented } from "../draw/dom.js";
import { headName, visible } from "../draw/format.js";
import { legendTexts } from "../draw/figure.js";
import { drawLegend } from "../draw/heatmap.js";
import { DECADES } from "../draw/colouring.js";
import { PALETTES } from "../draw/palette.js";

const VIEW_NAMES = [
  { value: "heads", text: "Heads", title: "Every head of the layer (1)" },
  { value: "map", text: "Map", title: "One head (2)" },
  { value: "lines", text: "Lines", title: "From token to token (3)" },
  { value: "overview", text: "All layers", title: "Every head of every layer (4)" },
];
const SCALE_NAMES = [
  { value: "row", text: "Row", title: "Each query's row by its own largest weight (g)" },
  { value: "head", text: "Head", title: "Each head by what is large in it; a few weights may be larger (g)" },
  { value: "global", text: "Global", title: "One scale for all layers, heads and runs (g)" },
];

const CURVE_NAMES = [
  { value: "linear", text: "Linear", title: "Colour in proportion to the weight (l)" },
  { value: "root", text: "Root", title: "Colour in proportion to the weight's square root: faint weights are seen (l)" },
  { value: "log", text: "Log", title: `Colour by the weight's power of ten, ${DECADES} of them (l)` },
];

/** A chooser between a button back and a button on. */
function stepper(name, list, onMove) {
  const [back, on] = [-1, 1].map((by) =>
    el(
      "button.step", {
        type: "button", "aria-label": `${by < 0 ? "Previous" : "Next"} ${name}`,
        onclick: () => onMove(by),
      },
      icon(by < 0 ? "previous" : "next"),
    ),
  );
  return el("label.stepper", {}, el("span", {}, name), el("span.box", {}, back, list.node, on));
}

export class Controls {
  /** @param actions: what the buttons do; see actions.js. */
  constructor(actions) {
    const { set } = actions;
    this.view = segmented("View", VIEW_NAMES, (view) => actions.view(view));
    this.layer = chooser("Layer", (layer) => set({ layer }));
    this.head = chooser("Head", (head) => actions.head(head));
    this.sample = chooser("Sample", (sample) => set({ sample: Number(sample) }));
    this.scale = segmented("Colour scale", SCALE_NAMES, (scale) => set({ scale }));
    this.curve = segmented("Curve of colours", CURVE_NAMES, (curve) => set({ curve }));
    this.palette = chooser("Colours", (palette) => set({ palette }));
    this.legend = el("canvas");
    this.low = el("span");
    this.high = el("span");
    this.theme = el("button.icon-button", { type: "button", onclick: actions.theme });
    this.sampleStepper = stepper("sample", this.sample, actions.sample);
    this.node = el(
      "header.controls", {},
      el(
        "div.bar", {},
        this.view.node,
        stepper("layer", this.layer, actions.layer),
        stepper("head", this.head, actions.moveHead),
        this.sampleStepper,
        el("span.space"),
        this.menu(actions),
        button("link", "Copy a link to what is shown (y)", actions.copyLink),
        this.theme,
        el("button.icon-button.help", { type: "button", title: "Keyboard keys (?)", onclick: actions.help }, "?"),
      ),
      el(
        "div.bar.second", {},
        el("span.caption", {}, "colour"), this.scale.node, this.curve.node, this.palette.node,
        el("span.legend", {}, this.low, this.legend, this.high),
        el("span.legend", { title: "Blocked by a mask, or too faint for the model's own numbers" }, el("i.nothing"), "exactly 0"),
        el("span.space"),
      ),
    );
  }

  menu(actions) {
    const items = ["png", "svg", "csv"].map((kind) =>
      el("button", { type: "button", onclick: () => actions.download(kind) }, kind.toUpperCase()),
    );
    this.details = el(
      "details.menu", {},
      el("summary", { title: "Download what is shown (e)", "aria-label": "Download" }, icon("download")),
      el("div.items", {}, ...items),
    );
    this.details.addEventListener("click", (event) => {
      if (event.target.closest(".items")) this.details.open = false;
    });
    document.addEventListener("pointerdown", (event) => {
      if (!this.details.contains(event.target)) this.details.open = false;
    });
    return this.details;
  }

  draw(scene, state, table, dark) {
    const [pane] = scene.panes;
    this.view.show(state.view);
    this.layer.show(
      pane.entries.map(({ tag }) => ({ value: tag, text: visible(pane.shortName(tag)) })),
      pane.entry?.tag,
    );
    const heads = Array.from({ length: pane.map?.headCount ?? 0 }, (_, head) => head);
    this.head.show(
      [
        { value: "all", text: "all heads" },
        ...heads.map((head) => ({ value: String(head), text: headName(pane.map, head) })),
        ...(heads.length > 1 ? [{ value: "mean", text: "mean of heads" }] : []),
      ],
      String(state.head),
    );
    const samples = pane.map?.samples ?? pane.scores?.byTag.values().next().value?.samples ?? [];
    this.sample.show(
      samples.map((sample, i) => ({ value: String(i), text: String(sample) })),
      String(pane.sample),
    );
    this.sampleStepper.hidden = samples.length < 2;
    this.scale.show(state.scale);
    this.curve.show(state.curve);
    this.palette.show(PALETTES.map((name) => ({ value: name, text: name })), state.palette);
    this.drawLegend(scene, table);
    this.theme.title = `Theme: ${state.theme} (d)`;
    this.theme.setAttribute("aria-label", this.theme.title);
    this.theme.replaceChildren(icon(dark ? "moon" : "sun"));
  }

  /** What the two ends of the colours stand for. */
  drawLegend(scene, table) {
    drawLegend(this.legend, table, 120, 10);
    const { low, high } = legendTexts(scene);
    this.low.textContent = low;
    this.high.textContent = high;
  }
}

function button(name, title, onclick) {
  return el("button.icon-button", { type: "button", title, "aria-label": title, onclick }, icon(name));
}

/** The runs: one, or a second beside it. */
export class RunChooser {
  constructor({ set, compare }) {
    this.run = chooser("Run", (run) => set({ run, layer2: null }));
    this.other = chooser("Run to compare with", (vs) => set({ vs, layer2: null }));
    this.toggle = el("button.compare", { type: "button", title: "Compare two runs (c)", onclick: compare });
    this.node = el(
      "section.runs", {},
      el("h2", {}, "Run"),
      el("div.row", {}, el("span.badge.a", {}, "A"), this.run.node),
      (this.second = el("div.row", {}, el("span.badge.b", {}, "B"), this.other.node)),
      this.toggle,
    );
  }

  draw(runs, scene, state) {
    const options = runs.map(({ run }) => ({ value: run, text: visible(run) }));
    for (const [list, key] of [[this.run, scene.panes[0]?.run], [this.other, state.vs]]) {
      const known = runs.some(({ run }) => run === key);
      const gone = known || key === null ? [] : [{ value: key, text: `${visible(key)} (gone)` }];
      list.show([...options, ...gone], key);
    }
    this.second.hidden = state.vs === null;
    this.node.classList.toggle("comparing", state.vs !== null);
    const label = state.vs === null ? "Compare with another run" : "Stop comparing";
    this.toggle.replaceChildren(icon(state.vs === null ? "compare" : "close"), label);
    this.toggle.hidden = runs.length === 0;
  }
}
