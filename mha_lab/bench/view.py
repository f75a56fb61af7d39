"""How fast maps are seen: in a notebook's cell and in the tab, beside bertviz and Inspectus.

Usage:
  python -m mha_lab bench view [lengths=64,200] [layers=6] [heads=12] [rounds=3] [steps=200]
      [views=heads]

For each length: seconds from the call to the picture in headless Chromium (the last change of the
page), the size of the page, and milliseconds of a change of layer, in the page and in TensorBoard's
tab. bertviz' model view and Inspectus take turns with ours where they are installed; what bertviz
loads from the network may lie in a folder, scripts=FOLDER; offline it shows no picture without.
Then how evenly the tab plays so many steps at 16 a second in views=heads,lines,overview, twice:
steps a second in the mean and in the slowest second, and the page's memory; and how long it takes
to show 1,024 heads (*All layers* of 32 layers), from the request and from the click. Needs
playwright and Chromium; chromium=PATH tells where.
"""

import importlib.util
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mha_lab.arguments import no_more, split, whole_number
from mha_lab.bench.playing import SHOWN, play
from mha_lab.bench.view_many import many_heads
from mha_lab.bench.view_maps import causal_weights, made_maps
from mha_lab.bench.view_rivals import RIVALS, answer_from
from mha_lab.bench.view_server import tab
from mha_lab.errors import UserError
from mha_lab.terminal import show_table

_ARGUMENTS = ["--no-sandbox", "--enable-precise-memory-info"]
_SETTINGS = ("lengths", "layers", "heads", "rounds", "steps", "views", "scripts", "chromium")
_UNTIL_QUIET = """() => new Promise((resolve) => {
  const start = performance.timeOrigin;
  let last = performance.now();
  new MutationObserver(() => (last = performance.now()))
    .observe(document, { subtree: true, childList: true, attributes: true });
  const look = () => {
    const drawn = [...document.querySelectorAll("canvas, svg *")].some((n) => n.checkVisibility());
    if (drawn && performance.now() - last > 400) resolve((start + last) / 1000);
    else if (performance.now() > 60000) resolve(Infinity);
    else setTimeout(look, 20);
  };
  look();
})"""
_NEXT_LAYER = """() => new Promise((resolve) => {
  const start = performance.now();
  const node = document.querySelector(".subtitle");
  const before = node.textContent;
  const watch = new MutationObserver(() => {
    if (node.textContent === before) return;
    watch.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)));
  });
  watch.observe(node, { subtree: true, childList: true, characterData: true });
  document.querySelector("[aria-label='Next layer']").click();
})"""


def main(arguments: Sequence[str]) -> int:
    """Time, print a table."""
    settings, rest = split(arguments, _SETTINGS)
    no_more(rest, _SETTINGS)
    layers, heads, rounds = (
        whole_number(name, settings.get(name, default), low=1, high=128)
        for name, default in (("layers", "6"), ("heads", "12"), ("rounds", "3"))
    )
    lengths = [
        whole_number("lengths", text, low=2, high=2048)
        for text in settings.get("lengths", "64,200").split(",")
    ]
    steps = whole_number("steps", settings.get("steps", "200"), low=1, high=10_000)
    views = settings.get("views", "heads").split(",")
    for view in views:
        if view not in SHOWN:
            raise UserError(f"views={view} is none of {', '.join(SHOWN)}")
    scripts = Path(settings["scripts"]) if "scripts" in settings else None
    chromium = settings.get("chromium", "/usr/bin/chromium")
    if importlib.util.find_spec("playwright") is None or not Path(chromium).exists():
        raise UserError("bench view needs playwright (pip install playwright) and chromium=PATH")
    from playwright.sync_api import sync_playwright

    rows, played = [], []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        for length in lengths:
            rows += _of_length(
                browser, Path(folder) / str(length), layers, heads, length, rounds, scripts
            )
            played += _played(
                browser, Path(folder) / f"{length}_played", layers, heads, length, steps, views
            )
        many = many_heads(browser, Path(folder) / "many", rounds)
        browser.close()
    columns = ("tokens", "what", "to the picture, s", "page, MB", "next layer, ms")
    show_table(columns, rows, numeric=3)
    if played:
        show_table(
            ("tokens", "view", "steps", "steps/s", "in the slowest second", "memory, MB"),
            played,
            numeric=4,
        )
    show_table(
        ("heads in one view", "from the request, ms", "from the click, ms"), [many], numeric=3
    )
    absent = [name for name in RIVALS if importlib.util.find_spec(name) is None]
    if absent:
        print(f"not compared, as not installed: pip install {' '.join(absent)}")
    return 0


def _of_length(
    browser: Any,
    folder: Path,
    layers: int,
    heads: int,
    length: int,
    rounds: int,
    scripts: Path | None,
) -> list[tuple[str, ...]]:
    """Each viewer's row at one length."""
    folder.mkdir()
    weights, tokens = causal_weights(layers, heads, length)
    maps = made_maps(layers, heads, length)
    makers: dict[str, Callable[[], str]] = {"mha_lab": lambda: maps.show().html}
    for name, rival in RIVALS.items():
        if importlib.util.find_spec(name) is not None:
            makers[name] = partial(rival, weights, tokens)
    seconds: dict[str, list[float]] = {name: [] for name in makers}
    changes: list[float] = []
    sizes: dict[str, int] = {}
    for _ in range(rounds):
        for name, make in makers.items():
            page = browser.new_page(viewport={"width": 1000, "height": 720})
            if scripts is not None:
                answer_from(page, scripts)
            start = time.time()
            file = folder / f"{name}.html"
            file.write_text(make(), encoding="utf-8")
            page.goto(file.as_uri())
            seconds[name].append(page.evaluate(_UNTIL_QUIET) - start)
            sizes[name] = file.stat().st_size
            if name == "mha_lab":
                changes += [page.evaluate(_NEXT_LAYER) for _ in range(layers - 1)]
            page.close()
    rows = [
        (
            str(length),
            name,
            _seconds(seconds[name]),
            f"{sizes[name] / 1e6:.2f}",
            _median(changes) if name == "mha_lab" else "",
        )
        for name in makers
    ]
    with tab(maps, folder / "runs") as address:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        page.locator(".heatmap canvas").first.wait_for(timeout=60000)
        in_tab = [page.evaluate(_NEXT_LAYER) for _ in range(layers - 1)]
        page.close()
    return [*rows, (str(length), "the tab", "", "", _median(in_tab))]


def _played(
    browser: Any,
    folder: Path,
    layers: int,
    heads: int,
    length: int,
    steps: int,
    views: Sequence[str],
) -> list[tuple[str, ...]]:
    """A row for each view and each time that the tab plays all steps."""
    if steps < 2:
        return []
    with tab(made_maps(layers, heads, length), folder, steps=steps) as address:
        rows: list[tuple[str, ...]] = []
        for view in views:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            rows += [
                (str(length), view, str(steps), f"{one.mean:.1f}", str(one.slowest),
                 f"{one.megabytes:.0f}")
                for one in play(page, address, view=view)
            ]  # fmt: skip
            page.close()
    return rows


def _seconds(values: Sequence[float]) -> str:
    middle = statistics.median(values)
    return f"{middle:.2f}" if math.isfinite(middle) else "none"


def _median(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.0f}" if values else ""
