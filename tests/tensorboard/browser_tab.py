"""A real TensorBoard server, and its Attention tab in headless Chromium."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAME = "mha_lab_attention"
PATIENCE = 180.0  # seconds that a server may take to start or to read, on a busy machine
SHOWN = ".heatmap canvas, .lines canvas, .thumbnail, .welcome h2, .message:visible"


@contextmanager
def tensorboard(logdir: Path, *options: str) -> Iterator[str]:
    """Serve a folder on a free port of this machine; yields the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--reload_interval", "1", *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: server.poll() is None and ask(address, "runs") is not None, PATIENCE)
        yield address
    finally:
        server.terminate()
        server.wait(20)


def ask(address: str, route: str, *, until=None) -> dict | None:
    """What a route answers, None where it does not; asked again ``until`` the answer will do."""
    found = None

    def once() -> bool:
        nonlocal found
        try:
            with urllib.request.urlopen(
                f"{address}/data/plugin/{NAME}/{route}", timeout=30
            ) as answer:
                found = json.load(answer)
        except OSError:
            found = None
        return until is None or bool(found and until(found))

    wait_until(once, PATIENCE)
    return found


def wait_until(condition, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened in time"
        time.sleep(0.05)


class Tab:
    """The Attention tab in a page; every error of the page is remembered in ``errors``."""

    def __init__(self, page, address: str) -> None:
        self.page = page
        self.address = address
        self.errors: list[str] = []
        page.set_default_timeout(60000)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._on_console)

    def _on_console(self, message) -> None:
        refused = "status of 404" in message.text  # a sentence of the server; the page shows it
        if message.type == "error" and not refused:
            self.errors.append(message.text)

    def open(self, *, alone: bool = True, **choices: object) -> Tab:
        """Open the tab with these choices in the address.

        Args:
            alone: The page by itself, which is much faster, rather than inside TensorBoard's.
            choices: Names and values of the page's state.
        """
        ours = [f"p.{NAME}.{key}={quote(str(value), safe='')}" for key, value in choices.items()]
        path = f"data/plugin_entry.html?name={NAME}" if alone else ""
        pieces = ours if alone else [NAME, *ours]  # TensorBoard knows no tab with an "&" at its end
        self.page.goto("about:blank")
        return self.go(f"{self.address}/{path}#{'&'.join(pieces)}")

    def go(self, url: str) -> Tab:
        """Open an address, and wait until something is shown."""
        self.page.goto(url)
        alone = "plugin_entry.html" in url
        self.frame = self.page if alone else self.page.frame_locator("iframe").first
        self.get(SHOWN).first.wait_for()
        return self

    def get(self, selector: str):
        return self.frame.locator(selector)

    def button(self, name: str):
        return self.frame.get_by_role("button", name=name, exact=True)

    def chooser(self, name: str):
        return self.frame.get_by_role("combobox", name=name, exact=True)

    def press(self, key: str) -> None:
        """Press a key with the focus on the page itself."""
        self.get("body").evaluate("() => document.activeElement?.blur()")
        self.get("body").press(key)

    def state(self) -> dict[str, str]:
        """The choices as they stand in the address."""
        prefix = f"p.{NAME}."
        pieces = self.page.evaluate("location.hash").removeprefix("#").split("&")
        pairs = [piece.partition("=") for piece in pieces if piece.startswith(prefix)]
        return {name.removeprefix(prefix): unquote(value) for name, _, value in pairs}

    def until_state(self, **expected: str | None) -> None:
        wait_until(lambda: all(self.state().get(key) == v for key, v in expected.items()))

    def until_text(self, selector: str, text: str) -> None:
        self.get(selector).filter(has_text=text).first.wait_for()

    def hover(self, query: int, key: int, *, map_index: int = 0) -> None:
        """Point at a cell of one of the maps."""
        canvas = self.get(".heatmap canvas").nth(map_index)
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        left, top, cell = (float(part) for part in canvas.get_attribute("data-cells").split())
        x, y = left + (key + 0.5) * cell, top + (query + 0.5) * cell
        self.page.mouse.move(box["x"] + x, box["y"] + y)
