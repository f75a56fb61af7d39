"""How fast the tab shows every head of a large model: 32 layers of 32 heads."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from mha_lab.bench.view_maps import made_maps
from mha_lab.bench.view_server import tab

LAYERS, HEADS, LENGTH = 32, 32, 64
_SETTLED = 700  # ms: Chromium loads its own pages beside a new tab, on the same cores

# A tile's canvas has a browser's own size, 300 pixels, until it is drawn. A tile that the browser
# skips, as out of view, is not asked for its place: that would have it laid out.
_DRAWN = """async (start) => {
  const frame = () => new Promise(requestAnimationFrame);
  while (!document.querySelector(".thumbnail canvas")) await frame();
  await frame();
  const inView = ({ top, bottom }) => bottom > 0 && top < window.innerHeight;
  const isEmpty = (tile) => tile.querySelector("canvas").width === 300;
  const isSkipped = (tile) => !tile.checkVisibility({ contentVisibilityAuto: true });
  const isMissing = (tile) =>
    isEmpty(tile) && !isSkipped(tile) && inView(tile.getBoundingClientRect());
  while ([...document.querySelectorAll(".thumbnail")].some(isMissing)) await frame();
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now() - start;
}"""
_CHOOSE = """(text) => {
  [...document.querySelectorAll("button")].find((one) => one.textContent === text).click();
  return performance.now();
}"""


def many_heads(browser: Any, folder: Path, rounds: int) -> tuple[str, str, str]:
    """A row: how many heads, and milliseconds until those in view are drawn.

    The first number counts from the request for the page, the other from the click on *All layers*.
    """
    opened, changed = [], []
    with tab(made_maps(LAYERS, HEADS, LENGTH), folder) as address:
        for _ in range(rounds):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.wait_for_timeout(_SETTLED)
            page.goto(f"{address}#p.mha_lab_attention.view=overview")
            opened.append(page.evaluate(_DRAWN, 0))
            page.evaluate(_CHOOSE, "Heads")
            page.locator(".heatmap canvas").last.wait_for()
            page.wait_for_timeout(500)
            changed.append(page.evaluate(_DRAWN, page.evaluate(_CHOOSE, "All layers")))
            page.close()
    return (
        f"{LAYERS * HEADS:,}",
        f"{statistics.median(opened):.0f}",
        f"{statistics.median(changed):.0f}",
    )
