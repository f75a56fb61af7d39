"""A weighting and a whole mechanism are each one Python file and one YAML: inside and outside."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SMALL = (
    "trainer.max_steps=2",
    "trainer.val_check_interval=1",
    "trainer.enable_progress_bar=false",
    "data.validation_size=20",
    "data.test_size=20",
    "data.batch_size=4",
    "model.embed_dim=8",
    "model.num_heads=2",
)
WEIGHTING = '''
"""Scores to the second power instead of the exponential."""

from torch import Tensor


def squared(scores: Tensor, allowed: Tensor, *, shift: float = 1.0) -> Tensor:
    """Each row in proportion to (1 + shift + elu(score))²."""
    powers = (scores.clamp(min=-20).exp().clamp(max=1) + scores.relu() + shift) ** 2
    powers = powers.masked_fill(~allowed, 0.0)
    return powers / powers.sum(-1, keepdim=True)


squared.is_softmax = False
'''
MECHANISM = '''
"""A softmax over scores of one temperature more."""

import torch
from torch import Tensor, nn

from mha_lab.attention.composed import ComposedAttention


class Tempered(nn.Module):
    """Queries are scaled by a learned number before anything else."""

    is_softmax = True

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.ones(()))
        self.inner = ComposedAttention(embed_dim, num_heads, dropout)

    @property
    def out_proj(self) -> nn.Module:
        """The last step."""
        return self.inner.out_proj

    def forward(self, query: Tensor, key: Tensor, value: Tensor, *args, **kwargs):
        """As torch's."""
        return self.inner(query * self.temperature, key, value, *args, **kwargs)
'''
YAML = "# {line}\n_target_: {target}\n_partial_: true\n"


def mha_lab(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mha_lab", *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def everything(folder: Path, *more: str) -> None:
    """List, check, train and report."""
    listed = mha_lab(folder, "list", "attention", "attention/weighting", *more)
    assert "Squares of scores" in listed
    assert "Softmax of one temperature more" in listed
    checked = mha_lab(folder, "check", "attention/weighting=squared", *more)
    assert "all checks passed" in checked
    assert "all checks passed" in mha_lab(folder, "check", "attention=tempered", *more)
    for name, words in (
        ("weighting", ("attention/weighting=squared", "+attention.weighting.shift=0.5")),
        ("mechanism", ("attention=tempered",)),
    ):
        run = folder / "outputs" / name
        mha_lab(folder, "train", *words, "position=alibi", *SMALL, f"hydra.run.dir={run}", *more)
        assert json.loads((run / "summary.json").read_text())["status"]
    assert "tempered" in mha_lab(folder, "report", "outputs", "by=attention")


@pytest.mark.slow
def test_in_a_copy_of_the_project(tmp_path: Path) -> None:
    for name in ("mha_lab", "configs"):
        shutil.copytree(PROJECT / name, tmp_path / name)
    attention, configs = tmp_path / "mha_lab" / "attention", tmp_path / "configs" / "attention"
    (attention / "weighting" / "squared.py").write_text(WEIGHTING)
    (attention / "tempered.py").write_text(MECHANISM)
    write(configs, "mha_lab.attention.weighting.squared", "mha_lab.attention.tempered")
    everything(tmp_path)


@pytest.mark.slow
def test_from_outside(tmp_path: Path) -> None:
    (tmp_path / "squared.py").write_text(WEIGHTING)
    (tmp_path / "tempered.py").write_text(MECHANISM)
    (tmp_path / "options" / "attention" / "weighting").mkdir(parents=True)
    write(tmp_path / "options" / "attention", "squared", "tempered")
    everything(tmp_path, "--config-dir", "options")


def write(configs: Path, weighting: str, mechanism: str) -> None:
    about = YAML.format(line="Squares of scores", target=f"{weighting}.squared")
    (configs / "weighting" / "squared.yaml").write_text(about)
    about = YAML.format(line="Softmax of one temperature more", target=f"{mechanism}.Tempered")
    (configs / "tempered.yaml").write_text(about)
