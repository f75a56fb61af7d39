"""LightningCLI finds the callback by its class path, in both packages, in any order of imports."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
{first}
import torch
from torch import nn
from {package} import LightningDataModule, LightningModule
from {package}.cli import LightningCLI
from torch.utils.data import DataLoader

class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
    def training_step(self, batch, index):
        return self.attention(batch, batch, batch)[0].sum()
    def validation_step(self, batch, index):
        self.attention(batch, batch, batch)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

class Data(LightningDataModule):
    def train_dataloader(self):
        return DataLoader(torch.randn(4, 5, 6), batch_size=2)
    val_dataloader = train_dataloader

if __name__ == "__main__":
    cli = LightningCLI(Model, Data, seed_everything_default=1)
    from {package} import Callback
    found = [c for c in cli.trainer.callbacks if type(c).__name__ == "AttentionMapLogger"]
    assert len(found) == 1 and isinstance(found[0], Callback), cli.trainer.callbacks
    assert found[0].every_n_steps == 2 and found[0].max_size == 3, vars(found[0])
"""

YAML = """
trainer:
  callbacks:
    - class_path: mha_lab.AttentionMapLogger
      init_args: {every_n_steps: 2, max_size: 3, samples: [1]}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "how"),
    [
        ("pytorch_lightning", "yaml"),
        ("lightning.pytorch", "arguments"),
        ("lightning.pytorch", "ours first"),
    ],
)
def test_class_path(tmp_path, package, how):
    first = "from mha_lab import AttentionMapLogger" if how == "ours first" else ""
    script, yaml = tmp_path / "script.py", tmp_path / "config.yaml"
    script.write_text(SCRIPT.format(package=package, first=first))
    yaml.write_text(YAML)
    chosen = ["--config", str(yaml)]
    if how == "arguments":
        chosen = [
            "--trainer.callbacks+=mha_lab.AttentionMapLogger",
            "--trainer.callbacks.every_n_steps=2",
            "--trainer.callbacks.max_size=3",
        ]
    options = ["--trainer.max_epochs=1", "--trainer.accelerator=cpu"]
    options += ["--trainer.enable_progress_bar=false", f"--trainer.default_root_dir={tmp_path}"]
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), "fit", *chosen, *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert list(tmp_path.rglob("*tfevents*")) or list(tmp_path.rglob("attention"))
