/** The keyboard: what each key does, and the sheet that says so. */

import { el } from "../draw/dom.js";

/** [keys, what it says, what it does]. */
export function bindings(actions) {
  return [
    [["ArrowRight"], "→", "next step", () => actions.step(1)],
    [["ArrowLeft"], "←", "previous step", () => actions.step(-1)],
    [["Home"], "Home", "first step", () => actions.step(-Infinity)],
    [["End"], "End", "last step, and follow training", () => actions.step(Infinity)],
    [[" "], "space", "play or pause", actions.play],
    [["f"], "f", "live: look for new steps", actions.live],
    [["ArrowDown"], "↓", "next layer", () => actions.layer(1)],
    [["ArrowUp"], "↑", "previous layer", () => actions.layer(-1)],
    [["]"], "]", "next head", () => actions.moveHead(1)],
    [["["], "[", "previous head", () => actions.moveHead(-1)],
    [["a"], "a", "all heads", () => actions.head("all")],
    [["m"], "m", "mean of the heads", () => actions.head("mean")],
    [["s"], "s", "next sample", () => actions.sample(1)],
    [["c"], "c", "compare, or stop comparing", actions.toggleCompare],
    [["v"], "v", "difference of A and B", actions.difference],
    [["1"], "1", "heads", () => actions.view("heads")],
    [["2"], "2", "one map", () => actions.view("map")],
    [["3"], "3", "lines", () => actions.view("lines")],
    [["4"], "4", "all layers", () => actions.view("overview")],
    [["g"], "g", "colour scale: row, head, global", actions.scale],
    [["l"], "l", "linear, root or log", actions.curve],
    [["p"], "p", "next colours", actions.palette],
    [["d"], "d", "theme: auto, light, dark", actions.theme],
    [["5"], "5", "on the image", () => actions.view("image")],
    [["+", "="], "+", "zoom in", () => actions.zoom(1)],
    [["-"], "−", "zoom out", () => actions.zoom(-1)],
    [["0"], "0", "the whole map", actions.whole],
    [["t"], "t", "find a token", actions.find],
    [["h"], "h", "hide tokens", actions.hide],
    [["x"], "x", "the sample's text", actions.text],
    [["/"], "/", "filter layers", actions.filter],
    [["e"], "e", "download menu", actions.menu],
    [["y"], "y", "copy a link to what is shown", actions.copyLink],
    [["Shift+ArrowUp", "Shift+ArrowDown", "Shift+ArrowLeft", "Shift+ArrowRight"],
      "shift + arrows", "move the cross-hair, or to the next query or head", actions.crosshair],
    [["Escape"], "Esc", "back", actions.escape],
    [["?"], "?", "this sheet", actions.help],
  ];
}

export function listen(list) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { target } = event;
    const typing = target.matches("input[type=search]");
    if (target.matches("input[type=checkbox]") && event.key === " ") return;
    if (typing && event.key !== "Escape") return;
    if (document.querySelector("dialog[open]") && event.key !== "?") return; // it has its own keys
    // Keys that a focused element needs itself stay with it.
    if (target.matches("select, summary") && /^(Arrow|Home|End| |[a-z0-9]$)/.test(event.key)) return;
    if (target.matches("button, summary") && [" ", "Enter"].includes(event.key)) return;
    if (target.matches("input[type=range]") && /^(Arrow|Home|End)/.test(event.key)) return;
    const name = event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key;
    const found = list.find(([keys]) => keys.includes(name));
    if (!found) return;
    event.preventDefault();
    found[3](event);
  });
}

export class Help {
  constructor(list) {
    const rows = list.flatMap(([, shown, says]) => [el("dt", {}, el("kbd", {}, shown)), el("dd", {}, says)]);
    const close = el("button.icon-button", { type: "button", onclick: () => this.node.close() }, "×");
    close.setAttribute("aria-label", "Close");
    this.node = el(
      "dialog.help-sheet", { "aria-label": "Keyboard keys", tabindex: -1, autofocus: true },
      el("header", {}, el("h2", {}, "Keys"), close), el("dl", {}, ...rows),
    );
    this.node.addEventListener("click", (event) => {
      if (event.target === this.node) this.node.close();
    });
  }

  toggle() {
    if (this.node.open) this.node.close();
    else this.node.showModal();
  }
}
