/** What is chosen at the top of the page: view, layer, head, sample, tokens, and how it is drawn. */

import { DECADES } from "../draw/colouring.js";
import { chooser, el, icon, segmented } from "../draw/dom.js";
import { fullHeadName, visible } from "../draw/format.js";
import { legendTexts } from "../draw/legend.js";
import { PALETTES } from "../draw/palette.js";
import { drawLegend } from "../draw/raster.js";
import { Find } from "./find.js";
import { Hide } from "./hide.js";
import { downloads } from "./menu.js";

const VIEW_NAMES = [
  { value: "heads", text: "Heads", title: "Every head of the layer (1)" },
  { value: "map", text: "Map", title: "One head (2)" },
  { value: "lines", text: "Lines", title: "From token to token (3)" },
  { value: "overview", text: "All layers", title: "Every head of every layer (4)" },
  { value: "image", text: "Image", title: "Keys on the image (5)" },
];
const SCALE_NAMES = [
  { value: "row", text: "Row", title: "Each query's row by its own largest weight (g)" },
  { value: "head", text: "Head", title: "Each head by what is large in it; a few weights may be larger (g)" },
  { value: "global", text: "Global", title: "One scale for all layers, heads and runs: the largest weight (g)" },
];
const CURVE_NAMES = [
  { value: "linear", text: "Linear", title: "Colour in proportion to the weight (l)" },
  { value: "root", text: "Root", title: "Colour by the weight's square root, so that faint weights are seen (l)" },
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
  return el("div.stepper", {}, el("span", { "aria-hidden": "true" }, name), el("span.box", {}, back, list.node, on));
}

export class Controls {
  /** @param actions: what the buttons do; see actions.js. */
  constructor(actions, hasLink) {
    const { set } = actions;
    this.view = segmented("View", VIEW_NAMES, (view) => actions.view(view));
    this.layer = chooser("Layer", (layer) => set({ layer }));
    this.head = chooser("Head", (head) => actions.head(head));
    this.sample = chooser("Sample", (sample) => set({ sample: Number(sample) }));
    this.scale = segmented("Colour scale", SCALE_NAMES, (scale) => set({ scale }));
    this.curve = segmented("Curve of colours", CURVE_NAMES, (curve) => set({ curve }));
    this.palette = chooser("Colours", (palette) => set({ palette }));
    this.legend = el("canvas", { "aria-hidden": "true" });
    this.low = el("span");
    this.high = el("span");
    this.theme = el("button.icon-button", { type: "button", onclick: actions.theme });
    this.headStepper = stepper("head", this.head, actions.moveHead);
    this.sampleStepper = stepper("sample", this.sample, actions.sample);
    this.find = new Find(actions);
    this.hide = new Hide(actions);
    this.menu = downloads(actions.download);
    this.text = el("button.text-button", { type: "button", title: "Show the sample's text (x)", onclick: actions.text }, "Text");
    this.zoom = el(
      "span.zoom", { role: "group", "aria-label": "Window" },
      button("minus", "Zoom out (−)", () => actions.zoom(-1)),
      button("plus", "Zoom in (+); or turn the wheel, or drag a frame", () => actions.zoom(1)),
      (this.whole = el("button.text-button", { type: "button", title: "Show the whole map (0)", onclick: actions.whole }, "Whole map")),
    );
    this.node = el(
      "header.controls", {},
      el(
        "div.bar", {},
        this.view.node, stepper("layer", this.layer, actions.layer), this.headStepper, this.sampleStepper,
        el("span.space"),
        el(
          "span.ends", {},
          this.zoom,
          el(
            "span.icons", {},
            this.menu,
            hasLink ? button("link", "Copy a link to what is shown (y)", actions.copyLink) : null,
            this.theme,
            el("button.icon-button.help", { type: "button", title: "Keyboard keys (?)", "aria-label": "Keyboard keys", onclick: actions.help }, "?"),
          ),
        ),
      ),
      el(
        "div.bar.second", {},
        el("span.caption", {}, "colour"), this.scale.node, this.curve.node, this.palette.node,
        el("span.legend", {}, this.low, this.legend, this.high),
        el("span.legend", { title: "Blocked by a mask, or too faint for the model's own numbers" }, el("i.nothing"), "exactly 0"),
        el("span.space"),
        el("span.finders", {}, this.find.node, this.hide.node, this.text),
      ),
    );
  }

  draw(scene, state, table, dark) {
    const [pane] = scene.panes;
    const { whole, map } = pane;
    this.view.show(scene.view);
    this.view.hide("image", !whole?.image);
    this.layer.show(
      pane.entries.map(({ tag }) => ({ value: tag, text: visible(pane.shortName(tag)) })),
      pane.entry?.tag,
    );
    const heads = Array.from({ length: whole?.headCount ?? 0 }, (_, head) => head);
    this.head.show(
      [
        { value: "all", text: "all heads" },
        ...heads.map((head) => ({ value: String(head), text: fullHeadName(whole, head) })),
        ...(heads.length > 1 ? [{ value: "mean", text: "mean of heads" }] : []),
      ],
      String(state.head),
    );
    const samples = whole?.samples ?? pane.scores?.byTag.values().next().value?.samples ?? [];
    this.sample.show(
      samples.map((sample, i) => ({ value: String(i), text: `sample ${sample}` })),
      String(pane.sample),
    );
    this.sampleStepper.hidden = samples.length < 2;
    this.scale.show(state.scale);
    this.curve.show(state.curve);
    this.palette.show(PALETTES.map((name) => ({ value: name, text: name })), state.palette);
    drawLegend(this.legend, table, 120, 10);
    const { low, high } = legendTexts(scene);
    this.low.textContent = low;
    this.high.textContent = high;
    this.find.draw(scene, state);
    this.hide.draw(scene, state);
    this.text.hidden = !whole?.queryTokens || Boolean(whole.image);
    this.text.setAttribute("aria-pressed", String(state.text));
    this.zoom.hidden = scene.view === "overview" || scene.view === "image" || !map;
    this.whole.hidden = !state.rows && !state.cols;
    this.theme.title = `Theme: ${state.theme} (d)`;
    this.theme.setAttribute("aria-label", this.theme.title);
    this.theme.replaceChildren(icon(dark ? "moon" : "sun"));
  }
}

function button(name, title, onclick) {
  return el("button.icon-button", { type: "button", title, "aria-label": title, onclick }, icon(name));
}
