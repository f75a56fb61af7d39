/** Where keys lead the focus to, and how it gets away again. */

export function toFilter({ navigator }) {
  navigator.filter.hidden = false;
  navigator.filter.focus();
}

export function toFind({ controls }) {
  controls.find.input.focus();
}

export function toMenu({ controls }) {
  open(controls.menu, ".items button");
}

export function toHide({ controls }) {
  open(controls.hide.node, ".items input");
}

/** Leave a search field and close what is open; says whether there was any. */
export function leave(page) {
  const here = document.activeElement;
  const isSearch = here?.matches("input[type=search]");
  if (isSearch) here.blur();
  const details = page.node.querySelector("details[open]");
  if (details) details.open = false;
  return isSearch || Boolean(details);
}

function open(details, first) {
  details.open = !details.open;
  if (details.open) details.querySelector(first)?.focus();
}
