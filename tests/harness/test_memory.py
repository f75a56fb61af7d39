"""What cannot fit into memory is refused by arithmetic, at once, before anything is allocated."""

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small_runs import TINY
from torch import nn

from mha_lab import memory
from mha_lab.errors import UserError

Lab = Callable[..., tuple[int, str, str]]
HUGE = 10**12


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("model.embed_dim", ["model.num_heads=1"]),
        ("model.feedforward_dim", []),
        ("model.num_layers", []),
        ("position.max_length", []),
        ("task.vocab_size", []),
        ("task.max_length", []),
        ("data.train_size", []),
        ("data.validation_size", []),
        ("data.test_size", []),
        ("data.batch_size", []),
        ("model.hidden_dim", ["model=recurrent"]),
    ],
)
def test_a_size_that_no_machine_has(
    key: str, more: list[str], lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    heads = [word for word in TINY if word.split("=")[0] not in (key, "model.num_heads")]
    words = [*(heads if more != ["model=recurrent"] else heads[1:]), *more, f"{key}={HUGE}"]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code, _, err = lab("train", "task=copy", *words)
    assert code == 2, err
    assert f"{key}={HUGE}" in err
    assert "of memory, and this machine has" in err
    assert len(err.strip().splitlines()) == 1
    assert not any(tmp_path.rglob("*.yaml"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB


def test_counted_bytes_are_those_of_the_model():
    def make(layers: int | None) -> nn.Module:
        return nn.Sequential(*(nn.Linear(7, 11) for _ in range(layers or 3)))

    numbers = 7 * 11 + 11
    of_layer = 4 * numbers + 3 * memory.MODULE  # a module and two parameters
    for layers in (1, 3, 1000):
        counted = memory.model_bytes(make if layers > 3 else lambda _: make(layers), layers)  # noqa: B023
        assert counted == layers * of_layer + memory.MODULE


def test_counting_draws_no_numbers():
    before = torch.get_rng_state()
    memory.model_bytes(lambda _: nn.Linear(3, 5), None)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_limit_counts_as_the_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 1000)
    memory.require(1000, "this")
    with pytest.raises(UserError, match="this would take at least 1 kB"):
        memory.require(1001, "this")
