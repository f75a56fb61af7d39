"""A long run of a large model, recorded by the callback at its defaults.

    python tests/tensorboard/long_run.py

makes it (6 layers, 8 heads, 200 validations) and prints how large it is, how fast TensorBoard
answers for a map of it, and how fast headless Chromium opens the tab and draws 8 heads of 64 × 64.
"""

import logging
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import pytorch_lightning as pl
import torch
from attention_app import App
from browser_tab import ARGUMENTS, CHROMIUM, NAME, Tab, tensorboard
from pytorch_lightning.loggers import TensorBoardLogger
from torch import nn

from mha_lab import AttentionMapLogger

LAYERS, HEADS, VALIDATIONS, LENGTH = 6, 8, 200, 96


class Large(pl.LightningModule):
    """Somebody's own module: an encoder that learns to give its input back."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, HEADS, 64, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)

    def training_step(self, batch):
        return nn.functional.mse_loss(self.encoder(batch), batch)

    validation_step = training_step

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-2)

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.randn(2, LENGTH, 64), 2)

    val_dataloader = train_dataloader


def train(folder: Path, validations: int = VALIDATIONS) -> None:
    """Leave the run's events in a folder."""
    torch.manual_seed(0)
    for name in ("lightning.pytorch", "pytorch_lightning"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pl.Trainer(
            max_epochs=validations,
            logger=TensorBoardLogger(folder, name="", version="long"),
            callbacks=[AttentionMapLogger()],
            accelerator="cpu",
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        ).fit(Large())


def bytes_in(folder: Path) -> int:
    """How large all files are together."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def seconds_to_draw(folder: Path) -> list[float]:
    """From an empty page to all heads of a layer, for each layer; the first time is not counted."""
    from playwright.sync_api import sync_playwright

    seconds = []
    with (
        tensorboard(folder, "--samples_per_plugin", f"{NAME}=0") as address,
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        tab = Tab(chromium.new_page(viewport={"width": 1280, "height": 800}), address)
        for layer in (0, *range(LAYERS)):
            tab.page.goto("about:blank")
            since = time.perf_counter()
            tab.open(run="long", layer=f"attention/encoder.layers.{layer}.self_attn")
            seconds.append(time.perf_counter() - since)
        chromium.close()
    return seconds[1:]


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(folder)
        print(f"{bytes_in(folder) / 1e6:.1f} MB of events")
        app = App(folder)
        seconds = []
        for layer in range(LAYERS):
            for step in range(1, VALIDATIONS + 1, 13):
                tag = f"attention/encoder.layers.{layer}.self_attn"
                since = time.perf_counter()
                answer = app.get("/map", run="long", tag=tag, step=step, sample=0)
                seconds.append(time.perf_counter() - since)
                assert answer.status_code == 200, answer.text
        page_seconds = seconds_to_draw(folder)
    print(
        f"{len(seconds)} maps asked for: median {1000 * statistics.median(seconds):.0f} ms, "
        f"longest {1000 * max(seconds):.0f} ms"
    )
    print(f"page opened and drawn: median {1000 * statistics.median(page_seconds):.0f} ms")


if __name__ == "__main__":
    main()
