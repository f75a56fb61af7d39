"""Launchers that cannot begin here: a sentence that says what to do."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_runs import TINY

from mha_lab.commands import train

Lab = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError('Could not detect "srun", are you indeed on a slurm cluster?'),
         "hydra/launcher=submitit_local"),
        (ValueError("When connecting to an existing cluster, object_store_memory must not be "
                    "provided."), "+hydra.launcher.ray.init.object_store_memory=null"),
    ],
)  # fmt: skip
def test_a_launcher_that_cannot_begin_is_told(
    error: Exception, said: str, lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    def fail(arguments: object) -> int:
        raise error

    monkeypatch.setattr(train, "main", fail)
    code, _, told = lab("train", "-m", "seed=0,1")
    assert code == 2
    assert said in told
    assert len(told.strip().splitlines()) == 1


@pytest.mark.slow
def test_without_slurm(lab: Lab, tmp_path: Path):
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
    if shutil.which("srun"):
        pytest.skip("this machine has SLURM")
    code, _, told = lab(
        "train", "-m", *TINY, "seed=0,1", "hydra/launcher=submitit_slurm",
        f"hydra.sweep.dir={tmp_path / 'runs'}",
    )  # fmt: skip
    assert code == 2
    assert "submitit_local" in told
    assert "Traceback" not in told
