"""How fast maps are seen: in a notebook's cell and in the tab, beside bertviz and Inspectus.

Usage:
  python -m mha_lab bench view [lengths=64,200] [layers=6] [heads=12] [rounds=3]

For each length: seconds from the call to the picture in headless Chromium (the last change of the
page), the size of the page, and milliseconds of a change of layer, in the page and in TensorBoard's
tab. bertviz' model view and Inspectus take turns with ours where they are installed; both load
scripts from the network. Needs playwright and Chromium; chromium=PATH tells where that is.
"""

import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mha_lab.arguments import no_more, split, whole_number
from mha_lab.bench.view_rivals import RIVALS
from mha_lab.bench.view_server import tab
from mha_lab.errors import UserError
from mha_lab.terminal import show_table

_SETTINGS = ("lengths", "layers", "heads", "rounds", "chromium")
_UNTIL_QUIET = """() => new Promise((resolve) => {
  const start = performance.timeOrigin;
  let last = performance.now();
  new MutationObserver(() => (last = performance.now()))
    .observe(document, { subtree: true, childList: true, attributes: true });
  const look = () => {
    const drawn = [...document.querySelectorAll("canvas, svg *")].some((n) => n.checkVisibility());
    if (drawn && performance.now() - last > 400) resolve((start + last) / 1000);
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
    chromium = settings.get("chromium", "/usr/bin/chromium")
    if importlib.util.find_spec("playwright") is None or not Path(chromium).exists():
        raise UserError("bench view needs playwright (pip install playwright) and chromium=PATH")
    from playwright.sync_api import sync_playwright

    rows = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for length in lengths:
            rows += _of_length(browser, Path(folder) / str(length), layers, heads, length, rounds)
        browser.close()
    columns = ("tokens", "what", "to the picture, s", "page, MB", "next layer, ms")
    show_table(columns, rows, numeric=3)
    return 0


def _of_length(
    browser: Any, folder: Path, layers: int, heads: int, length: int, rounds: int
) -> list[tuple[str, ...]]:
    """Each viewer's row at one length."""
    from mha_lab.maps.attention_map import AttentionMap
    from mha_lab.view.gallery import Gallery

    folder.mkdir()
    weights, tokens = _weights(layers, heads, length)
    maps = Gallery(
        AttentionMap(f"layers.{i}.attn", one).with_tokens([tokens], [tokens])
        for i, one in enumerate(weights)
    )
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
            f"{statistics.median(seconds[name]):.2f}",
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


def _weights(layers: int, heads: int, length: int) -> tuple[list[Any], list[str]]:
    """Causal weights (1, heads, length, length) of each layer, and tokens."""
    import torch

    torch.manual_seed(0)
    scores = torch.randn(layers, 1, heads, length, length) * 2
    blocked = torch.ones(length, length, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(blocked, -torch.inf).softmax(-1)
    return list(weights), [f"token{i}" for i in range(length)]


def _median(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.0f}" if values else ""
