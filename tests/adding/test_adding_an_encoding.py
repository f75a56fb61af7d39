"""An encoding is one Python file and one YAML: in a copy of the project, and from outside of it."""

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
CODE = '''
"""A learned slope a head, as in ALiBi otherwise."""

import torch
from torch import Tensor, nn


class SlopePositions(nn.Module):
    """Subtracts a learned slope times the distance.

    Args:
        embed_dim: any.
        num_heads: heads.
        start: of the slopes.
    """

    acts_on = "scores"
    is_relative = True

    def __init__(self, embed_dim: int, *, num_heads: int, start: float = 0.5) -> None:
        super().__init__()
        self.slopes = nn.Parameter(torch.full((num_heads, 1, 1), start))

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """(H, L, S)."""
        return -self.slopes.float() * (k_positions - q_positions[:, None]).abs()
'''
YAML = "# A learned slope a head\n_target_: {target}.SlopePositions\n_partial_: true\nstart: 0.25\n"


def mha_lab(folder: Path, *words: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mha_lab", *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def everything(folder: Path, attention: str, *more: str) -> None:
    """List, check, train, and report."""
    assert "A learned slope a head" in mha_lab(folder, "list", "position", *more)
    assert "all checks passed" in mha_lab(folder, "check", "position=slope", *more)
    words = ("position=slope", "position.start=0.75", f"attention={attention}", *SMALL)
    mha_lab(folder, "train", *words, f"hydra.run.dir={folder / 'outputs' / 'run'}", *more)
    summary = json.loads((folder / "outputs" / "run" / "summary.json").read_text())
    assert summary["position"] == "slope"
    assert "slope" in mha_lab(folder, "report", "outputs", "by=attention,position")


@pytest.mark.slow
def test_in_a_copy_of_the_project(tmp_path: Path) -> None:
    for name in ("mha_lab", "configs"):
        shutil.copytree(PROJECT / name, tmp_path / name)
    (tmp_path / "mha_lab" / "positions" / "slope.py").write_text(CODE)
    yaml = tmp_path / "configs" / "position" / "slope.yaml"
    yaml.write_text(YAML.format(target="mha_lab.positions.slope"))
    everything(tmp_path, "builtin")  # the bias joins its mask


@pytest.mark.slow
def test_from_outside(tmp_path: Path) -> None:
    (tmp_path / "slope.py").write_text(CODE)
    (tmp_path / "options" / "position").mkdir(parents=True)
    (tmp_path / "options" / "position" / "slope.yaml").write_text(YAML.format(target="slope"))
    everything(tmp_path, "composed", "--config-dir", "options")  # which takes encodings
