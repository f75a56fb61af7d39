/**
 * Elements made from data. Text is only ever set as text: a token "<img onerror=...>" is shown,
 * never parsed.
 */

const SVG = "http://www.w3.org/2000/svg";

/** el("button.primary", {title, onclick, "aria-label"}, ...children): strings become text. */
export function el(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** An SVG element; used by icons and by the figures that are downloaded. */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

const ICONS = {
  play: "M5 3.5v9l7.5-4.5z",
  pause: "M4.5 3.5h2.4v9H4.5zM9.1 3.5h2.4v9H9.1z",
  previous: "M10.5 3 5.5 8l5 5",
  next: "M5.5 3l5 5-5 5",
  download: "M8 2.5v7m-3-3 3 3 3-3M3 12.5h10",
  link: "M6.8 9.2l2.4-2.4M7.2 5 9 3.2a2.7 2.7 0 0 1 3.8 3.8L11 8.8M8.8 11 7 12.8A2.7 2.7 0 0 1 3.2 9L5 7.2",
  moon: "M13 9.6A5.5 5.5 0 0 1 6.4 3 5.5 5.5 0 1 0 13 9.6z",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1.2v1.6M8 13.2v1.6M1.2 8h1.6M13.2 8h1.6M3.2 3.2l1.1 1.1M11.7 11.7l1.1 1.1M3.2 12.8l1.1-1.1M11.7 4.3l1.1-1.1",
  minus: "M3 8h10",
  plus: "M3 8h10M8 3v10",
  close: "M4 4l8 8M12 4l-8 8",
  compare: "M2.5 3h4.2v10H2.5zM9.3 3h4.2v10H9.3z",
};
const FILLED = new Set(["play", "pause"]);

export function icon(name) {
  const drawing = svg("path", { d: ICONS[name], class: FILLED.has(name) ? "filled" : "lined" });
  return svg("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, drawing);
}

/** A row of buttons of which one is pressed. */
export function segmented(label, options, onChoose) {
  const buttons = new Map();
  const group = el("div.segmented", { role: "group", "aria-label": label });
  for (const { value, text, title } of options) {
    const button = el("button", { type: "button", title, onclick: () => onChoose(value) }, text);
    buttons.set(value, button);
    group.append(button);
  }
  return {
    node: group,
    show(value) {
      for (const [own, button] of buttons) button.setAttribute("aria-pressed", String(own === value));
    },
    hide(value, isHidden) {
      buttons.get(value).hidden = isHidden;
    },
  };
}

/** A <select> whose options follow the data; it keeps its nodes when nothing has changed. */
export function chooser(label, onChoose) {
  const node = el("select", { "aria-label": label, title: label });
  node.addEventListener("change", () => onChoose(node.value));
  let known = "";
  return {
    node,
    show(options, value) {
      const signature = JSON.stringify(options);
      if (signature !== known) {
        known = signature;
        node.replaceChildren(
          ...options.map((option) => el("option", { value: option.value, dir: "auto" }, option.text)),
        );
      }
      node.value = value;
    },
  };
}

/** A canvas of the given CSS size, sharp on any screen; returns its 2d context, scaled and empty. */
export function sized(canvas, width, height, empty = true) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (empty) context.clearRect(0, 0, width, height);
  return context;
}
