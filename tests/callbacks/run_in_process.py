"""A run that a test starts in a process of its own: PACKAGE STRATEGY FOLDER.

Each validation of each process leaves a file "RANK STEP" in the folder. The first process prints
which packages of Lightning were loaded.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader

package, strategy, folder = sys.argv[1:]
if package != "late":
    pl = import_module(package)

from mha_lab import AttentionMapLogger  # noqa: E402

callback = AttentionMapLogger(samples=2)
if package == "late":  # Lightning is imported when the callback is made already
    pl = import_module("lightning.pytorch")


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(22, 2, batch_first=True)

    def training_step(self, batch, batch_idx):
        return self.attention(batch, batch, batch)[0].square().mean()

    def validation_step(self, batch, batch_idx):
        self.attention(batch, batch, batch)
        Path(folder, f"{self.global_rank} {self.trainer.global_step}").touch()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    torch.manual_seed(0)
    data = DataLoader(torch.randn(24, 5, 22), batch_size=3)
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=1 if strategy == "auto" else 2,
        strategy=strategy,
        max_epochs=2,
        logger=[
            pl.loggers.TensorBoardLogger(folder, name="", version="run"),
            pl.loggers.CSVLogger(folder, name="", version="csv"),
        ],
        callbacks=[callback],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model(), data, data)
    if trainer.is_global_zero:
        loaded = [
            name for name in ("pytorch_lightning", "lightning.pytorch") if name in sys.modules
        ]
        print(json.dumps(loaded))


if __name__ == "__main__":
    main()
