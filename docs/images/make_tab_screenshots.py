"""Make the screenshots of the Attention tab that docs/attention_tab.md shows.

Trains two small copy models that differ in their positional encoding (about a minute), serves them
with TensorBoard, and photographs the tab in headless Chromium, as the browser tests drive it:

    python docs/images/make_tab_screenshots.py [FOLDER]

FOLDER keeps the runs; what is there already is not trained again.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "tensorboard"))

from browser_tab import ARGUMENTS, CHROMIUM, Tab, tensorboard  # noqa: E402

RUNS = ("learned", "sinusoidal")
LAYER = "attention/model.decoder.layers.0.cross_attn"


def train(folder: Path) -> None:
    """Train a copy model a run, with ten validations, unless it is there."""
    for position in RUNS:
        if not (folder / position / "summary.json").exists():
            command = [sys.executable, "-m", "mha_lab", "train", "+experiment=copy"]
            command += [f"position={position}", f"hydra.run.dir={folder / position}"]
            command += [
                "model.num_layers=2",
                "task.min_length=6",
                "callbacks.stop_when_solved=null",
            ]
            command += ["trainer.max_steps=200", "trainer.val_check_interval=20"]
            subprocess.run(command, check=True, cwd=ROOT)


def photograph(address: str) -> None:
    """Write one picture for each view."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        tab = Tab(page, address)

        tab.open(alone=False, run="learned", layer=LAYER)
        _save(tab, "tab_grid")

        tab.open(alone=False, run="learned", vs="sinusoidal", layer=LAYER, view="map", head=1)
        tab.hover(4, 4)
        _save(tab, "tab_compare")

        tab.open(alone=False, run="learned", view="overview", score="diagonal", order="high")
        _save(tab, "tab_overview")

        tab.open(alone=False, run="learned", layer=LAYER, view="lines", head=0, theme="dark")
        page.evaluate("document.body.classList.add('dark-mode')")
        _save(tab, "tab_dark")
        browser.close()


def _save(tab: Tab, name: str) -> None:
    """Photograph the page when it has come to rest."""
    tab.page.wait_for_timeout(1000)
    tab.page.screenshot(path=HERE / f"{name}.png")
    print(HERE / f"{name}.png")


def main() -> None:
    """Train, serve, photograph."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary).resolve()
        train(folder)
        with tensorboard(folder) as address:
            photograph(address)


if __name__ == "__main__":
    main()
