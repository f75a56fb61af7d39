"""Curricula over length: the bounds, and what the data module draws."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from mha_lab.tasks.copying.copy import copy_task
from mha_lab.training.curriculum import Curriculum
from mha_lab.training.data_module import TaskDataModule
from tests.training.test_data_module import FewRows


def lengths(tmp_path: Path, batches: int, **options: Any) -> list[set[int]]:
    task = copy_task(min_length=2, max_length=7, vocab_size=10)
    data = TaskDataModule(task, batch_size=101, seed=3, cache_dir=tmp_path, **options)
    stream = islice(data.train_dataloader(), batches)
    return [set(((batch.source != 0).sum(1) - 1).tolist()) for batch in stream]


def test_bounds_by_hand() -> None:
    staged = Curriculum(kind="staged", start=3, every=5, step=2)
    found = [staged.bounds(i, shortest=2, longest=8) for i in (0, 4, 5, 9, 10, 15, 99)]
    assert found == [(2, 3), (2, 3), (2, 5), (2, 5), (2, 7), (2, 8), (2, 8)]
    assert Curriculum(kind="staged").bounds(0, shortest=4, longest=8) == (4, 4)
    assert Curriculum(kind="fixed").bounds(7, shortest=2, longest=8) == (8, 8)
    assert Curriculum().bounds(7, shortest=2, longest=8) == (2, 8)


def test_what_is_drawn(tmp_path: Path) -> None:
    assert lengths(tmp_path, 2) == [{2, 3, 4, 5, 6, 7}] * 2
    assert lengths(tmp_path, 2, curriculum="fixed") == [{7}] * 2
    staged = {"curriculum": "staged", "curriculum_every": 2, "curriculum_start": 3}
    found = lengths(tmp_path, 9, **staged)
    assert found == [set(range(2, n + 1)) for n in (3, 3, 4, 4, 5, 5, 6, 6, 7)]


def test_a_staged_curriculum_that_has_ended_draws_as_uniform(tmp_path: Path) -> None:
    task = copy_task()
    plain, staged = (
        TaskDataModule(task, batch_size=11, seed=3, cache_dir=tmp_path, **options)
        for options in ({}, {"curriculum": "staged", "curriculum_start": 10})
    )
    pairs = zip(plain.train_dataloader(), staged.train_dataloader(), strict=False)
    for one, other in islice(pairs, 3):
        assert torch.equal(one.source, other.source)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"curriculum": "steep"}, "curriculum must be one of uniform, fixed, staged, got 'steep'"),
        (
            {"curriculum": "staged", "curriculum_start": 11},
            "curriculum_start must be at most 10, the",
        ),
        ({"curriculum_start": 13}, "at most 10, the longest training sequence, got 13"),
        ({"curriculum_every": 0}, "curriculum_every must be at least 1, got 0"),
        ({"curriculum": "fixed", "train_size": 5}, "curriculum=fixed needs training sequences"),
    ],
)
def test_what_is_refused(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TaskDataModule(copy_task(), batch_size=3, seed=0, cache_dir=tmp_path, **options)


def test_a_task_of_fixed_sequences_has_no_curriculum(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="curriculum=staged needs training sequences"):
        TaskDataModule(FewRows(), batch_size=3, seed=0, cache_dir=tmp_path, curriculum="staged")
