/**
 * One tab stop for many buttons: the arrow keys move among them, Home and End to the first and the
 * last. The buttons may lie in several rows; up and down lead to the nearest in the next row.
 */

export function roving(container, selector) {
  const items = () => [...container.querySelectorAll(selector)];

  const stop = (chosen, all = items()) => {
    for (const item of all) {
      const wanted = item === chosen ? "0" : "-1";
      // Styles are computed anew where it is set.
      if (item.getAttribute("tabindex") !== wanted) item.setAttribute("tabindex", wanted);
    }
  };

  container.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const all = items();
    const here = all.indexOf(event.target.closest(selector));
    if (here < 0) return;
    const next = {
      ArrowRight: () => all[here + 1], ArrowLeft: () => all[here - 1],
      ArrowDown: () => inNextRow(all, here, 1), ArrowUp: () => inNextRow(all, here, -1),
      Home: () => all[0], End: () => all.at(-1),
    }[event.key];
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    const found = next();
    if (!found) return;
    stop(found, all);
    found.focus();
  });

  container.addEventListener("focusin", (event) => {
    const item = event.target.closest(selector);
    if (item) stop(item);
  });

  return {
    /** After the buttons have changed: one of them can be reached by Tab, the chosen one if any. */
    refresh(chosen = null) {
      const all = items();
      const now = all.find((item) => item === document.activeElement);
      stop(now ?? chosen ?? all.find((item) => item.tabIndex === 0 && item.dataset.stop) ?? all[0], all);
    },
  };
}

function inNextRow(all, here, by) {
  const own = all[here].getBoundingClientRect();
  const middle = own.left + own.width / 2;
  let best = null;
  for (let i = here + by; i >= 0 && i < all.length; i += by) {
    const box = all[i].getBoundingClientRect();
    if (Math.abs(box.top - own.top) < own.height / 2) continue; // the same row
    if (best && Math.abs(box.top - best.top) > own.height / 2) break; // the row after the next
    const far = Math.abs(box.left + box.width / 2 - middle);
    if (!best || far < best.far) best = { item: all[i], top: box.top, far };
  }
  return best?.item ?? null;
}
