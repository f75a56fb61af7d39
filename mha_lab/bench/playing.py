"""How evenly the tab plays the steps of a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

_PLAY = """() => new Promise((resolve) => {
  const times = [];
  const step = document.querySelector(".timeline output");
  const watch = new MutationObserver(() => times.push(performance.now()));
  watch.observe(step, { childList: true, characterData: true, subtree: true });
  const button = document.querySelector(".play");
  button.click();
  const look = () => {
    if (times.length && button.getAttribute("aria-label") === "Play") {
      watch.disconnect();
      resolve(times);
    } else setTimeout(look, 100);
  };
  look();
})"""
SHOWN = {"heads": ".heatmap canvas", "lines": ".lines canvas", "overview": ".thumbnail canvas"}
"""What each view shows its maps in."""

_MEMORY = "performance.memory.usedJSHeapSize / 1e6"


class Played(NamedTuple):
    """One time through all steps.

    Attributes:
        mean: Steps a second.
        slowest: Steps in the second that had the fewest.
        megabytes: Of the page's heap afterwards.
    """

    mean: float
    slowest: int
    megabytes: float


def play(
    page: Any, address: str, *, view: str = "heads", rate: int = 16, times: int = 2
) -> list[Played]:
    """Play all steps of the one run that the tab shows, again and again.

    Args:
        page: Of the browser; its memory must be exact (``--enable-precise-memory-info``).
        address: Of the tab by itself.
        view: One of ``SHOWN``.
        rate: Steps a second that are asked for.
        times: How often.
    """
    chosen = f"p.mha_lab_attention.speed={rate}&p.mha_lab_attention.view={view}"
    page.goto(f"{address}#{chosen}")
    page.locator(SHOWN[view]).first.wait_for(timeout=60000)
    session = page.context.new_cdp_session(page)
    found = []
    for _ in range(times):
        drawn = page.evaluate(_PLAY)
        session.send("HeapProfiler.collectGarbage")
        mean = 1000 * (len(drawn) - 1) / (drawn[-1] - drawn[0])
        found.append(Played(mean, slowest_second(drawn), page.evaluate(_MEMORY)))
    return found


def slowest_second(times: Sequence[float]) -> int:
    """The fewest of some moments, ascending in milliseconds, that lie within any whole second."""
    starts = [time for time in times if time + 1000 <= times[-1]]
    return min(
        (sum(start <= time < start + 1000 for time in times) for start in starts),
        default=len(times),
    )
