"""The notebooks of docs/notebooks run, and show what they say, in JupyterLab too."""

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

PATIENCE = 240  # seconds
NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def execute(path: Path, folder: Path):
    """The notebook with its outputs, run in a folder of its own."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return book


def views(book) -> list[str]:
    """The HTML of each view that the notebook shows."""
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    shown = [output.get("data", {}).get("text/html", "") for output in outputs]
    return [text for text in shown if text.startswith("<iframe")]


def test_the_notebooks_are_kept_without_outputs():
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text())["cells"]
        assert not any(cell.get("outputs") for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_its_maps(path, tmp_path):
    found = views(execute(path, tmp_path))
    assert len(found) == (2 if path.stem.startswith("3") else 1)
    for text in found:
        assert len(text) < 4_000_000
        assert "srcdoc=" in text


@pytest.mark.browser
@pytest.mark.timeout(900)
def test_the_view_in_jupyterlab(page, tmp_path, monkeypatch):
    import nbformat
    from nbformat.sign import NotebookNotary

    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "data").mkdir()
    book = execute(NOTEBOOKS[0], tmp_path)
    NotebookNotary(data_dir=str(tmp_path / "data")).sign(book)  # else its outputs are not shown
    nbformat.write(book, tmp_path / "shown.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--port={port}", f"--ServerApp.root_dir={tmp_path}", "--IdentityProvider.token="]
    command += ["--ServerApp.disable_check_xsrf=true", "--LabApp.news_url="]
    log = tmp_path / "jupyterlab.log"
    with log.open("w") as file:
        server = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    try:
        # Ready is who answers for the page itself and for the notebook; both take long the first
        # time, and longer on a machine that is busy.
        for address in ("lab", "api/contents/shown.ipynb"):
            until_answered(f"http://127.0.0.1:{port}/{address}", server, log)
        page.page.set_default_timeout(PATIENCE * 1000)
        page.page.set_default_navigation_timeout(PATIENCE * 1000)
        page.page.goto(f"http://127.0.0.1:{port}/lab/tree/shown.ipynb", wait_until="commit")
        frame = page.page.frame_locator(".jp-OutputArea iframe").first
        page.page.locator(".jp-OutputArea iframe").first.wait_for(state="attached")
        page.page.locator(".jp-OutputArea iframe").first.scroll_into_view_if_needed()
        frame.locator(".tile canvas").nth(7).wait_for()
        frame.locator(".tile canvas").nth(3).click()
        frame.locator(".single canvas").wait_for()
        canvas = frame.locator(".heatmap canvas")
        left, top, cell = (float(x) for x in canvas.get_attribute("data-cells").split())
        canvas.hover(position={"x": left + 2.5 * cell, "y": top + 4.5 * cell})
        told = frame.locator(".tooltip .pair b").all_text_contents()
        assert told == ["fox  4", "quick  2"]
        assert re.fullmatch(r"0\.\d+", frame.locator(".tooltip .weight").text_content())
        page.page.screenshot(path=tmp_path / "jupyterlab.png")
    finally:
        page.page.goto("about:blank")
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:  # it may wait for its kernels; how it ends is its own
            server.kill()
            server.wait()
    page.errors.clear()  # JupyterLab's own, of connections that end


def until_answered(address: str, server: subprocess.Popen, log: Path) -> None:
    """Wait until a server answers; if it ends before that, say what it said."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text()[-2000:]
        try:
            urllib.request.urlopen(address, timeout=PATIENCE).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"{address} does not answer: {log.read_text()[-2000:]}")
