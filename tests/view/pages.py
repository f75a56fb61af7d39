"""Pages with maps inside, opened in headless Chromium, for the browser tests of this folder."""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import torch

from mha_lab import AttentionMap
from mha_lab.view.gallery import Gallery

CHROMIUM = "/usr/bin/chromium"
WORDS = tuple("the quick brown fox jumps over a lazy dog and then it sleeps".split())  # noqa: SIM905


def words(length: int) -> list[str]:
    """[CLS], words, [SEP]."""
    return ["[CLS]", *(WORDS[i % len(WORDS)] for i in range(length - 2)), "[SEP]"][:length]


def patterned(heads: int, length: int, source: int | None = None, *, causal=False, seed=0, n=1):
    """Weights (n, heads, length, source) with what heads of real models do."""
    source = source or length
    scores = torch.randn(n, heads, length, source, generator=torch.Generator().manual_seed(seed))
    query, key = torch.arange(length)[:, None], torch.arange(source)
    patterns = (
        6.0 * (query - key == 1),
        5.0 * (query == key),
        -0.15 * (query - key).abs(),
        7.0 * (key == 0),
        4.0 * ((query - key) % 7 == 0),
    )
    for head in range(heads):
        scores[:, head] += patterns[head % len(patterns)] * torch.ones(length, source)
    if causal:
        scores = scores.masked_fill(key > query, -torch.inf)
    return scores.softmax(-1)


def make_maps(
    layers: int = 2,
    heads: int = 3,
    length: int = 11,
    *,
    causal: bool = False,
    tokens: Sequence[str] | None = None,
    seed: int = 0,
    n: int = 1,
) -> Gallery:
    """Maps of some layers, with tokens."""
    rows = [list(tokens or words(length))] * n
    kind = "masked" if causal else "self"
    return Gallery(
        AttentionMap(
            f"encoder.layers.{i}.self_attn",
            patterned(heads, length, causal=causal, seed=seed + i, n=n),
            kind,
        ).with_tokens(rows, rows)
        for i in range(layers)
    )


class Opened:
    """A page in the browser; every error of the page is remembered in ``errors``."""

    def __init__(self, page) -> None:
        self.page = page
        self.errors: list[str] = []
        page.set_default_timeout(20000)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._on_console)

    def _on_console(self, message) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def open(self, path: Path, **choices: object) -> "Opened":
        """Open a file with these choices in its address, and wait for a picture."""
        pieces = [f"attention.{name}={quote(str(value))}" for name, value in choices.items()]
        self.page.goto("about:blank")
        self.page.goto(f"{path.as_uri()}#{'&'.join(pieces)}")
        self.page.locator(".pane canvas, .message:visible").first.wait_for()
        return self

    def get(self, selector: str):
        return self.page.locator(selector)

    def button(self, name: str):
        return self.page.get_by_role("button", name=name, exact=True)

    def press(self, key: str) -> None:
        self.page.evaluate("document.activeElement?.blur()")
        self.page.keyboard.press(key)

    def state(self, name: str) -> str | None:
        """A choice as it stands in the address."""
        found = re.search(rf"attention\.{name}=([^&]*)", self.page.url)
        return found and unquote(found[1])

    def until_state(self, **expected: str | None) -> None:
        for _ in range(100):
            if all(self.state(name) == value for name, value in expected.items()):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"{self.page.url} does not come to {expected}")

    def cell(self, query: int, key: int, *, map_index: int = 0) -> tuple[float, float]:
        """Where a cell of one of the maps lies on the page."""
        canvas = self.get(".heatmap canvas").nth(map_index)
        box = canvas.bounding_box()
        left, top, wide = (float(part) for part in canvas.get_attribute("data-cells").split())
        high = float(canvas.get_attribute("data-high"))
        return box["x"] + left + (key + 0.5) * wide, box["y"] + top + (query + 0.5) * high

    def told(self) -> list[str]:
        """The texts of the tooltip: query and key of each pane."""
        return self.get(".tooltip .pair b").all_text_contents()
