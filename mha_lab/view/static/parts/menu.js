/** The menu of files that can be made of what is shown. */

import { el, icon } from "../draw/dom.js";

export function downloads(onChoose) {
  const items = ["png", "svg", "csv"].map((kind) =>
    el("button", { type: "button", onclick: () => onChoose(kind) }, kind.toUpperCase()),
  );
  const details = el(
    "details.menu", {},
    el("summary.icon-button", { title: "Download what is shown (e)", "aria-label": "Download" }, icon("download")),
    el("div.items", {}, ...items),
  );
  details.addEventListener("click", (event) => {
    if (event.target.closest(".items")) details.open = false;
  });
  document.addEventListener("pointerdown", (event) => {
    if (!details.contains(event.target)) details.open = false;
  });
  return details;
}
