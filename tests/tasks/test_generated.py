"""Copy and sort, and what they share."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from mha_lab.tasks import copy, sort
from mha_lab.tasks.copy import copy_task
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sort import sort_task
from mha_lab.tasks.splits import is_in


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def symbols(row: list[int]) -> list[int]:
    """What stands before <eos>, which must be followed by padding alone."""
    end = row.index(2)
    assert not any(row[end + 1 :])
    return row[:end]


def test_copy_target_is_the_source() -> None:
    rows = torch.tensor([[7, 5, 0], [9, 0, 0]])
    assert torch.equal(copy.target_of(rows, torch.tensor([2, 1])), rows)


def test_sort_by_hand() -> None:
    rows = torch.tensor([[7, 5, 7, 6, 0], [9, 5, 0, 0, 0], [6, 0, 0, 0, 0]])
    expected = [[5, 6, 7, 7, 0], [5, 9, 0, 0, 0], [6, 0, 0, 0, 0]]
    assert sort.target_of(rows, torch.tensor([4, 2, 1])).tolist() == expected


def test_symbols_sort_by_number_not_by_name() -> None:
    task = sort_task(vocab_size=13)
    ids = torch.tensor([task.vocabulary.encode(["10", "2", "12", "3"])])
    ordered = sort.target_of(ids, torch.tensor([4]))[0].tolist()
    assert task.vocabulary.decode(ordered) == ["2", "3", "10", "12"]


@pytest.mark.parametrize(("make", "rule"), [(copy_task, list), (sort_task, sorted)])
@pytest.mark.parametrize("split", [None, "train", "validation", "test"])
def test_targets_follow_the_rule(make, rule, split) -> None:
    task = make(min_length=2, max_length=7, vocab_size=11)
    batch = task.draw(503, generator()) if split is None else task.fixed_split(split, 211)
    assert batch.source.shape[1] == task.max_source_length == 8
    assert batch.target.shape[1] == task.max_target_length == 8
    for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True):
        assert symbols(target) == rule(symbols(source))
        assert 2 <= len(symbols(source)) <= 7
        assert all(5 <= id_ < 16 for id_ in symbols(source))


def test_training_lengths_are_uniform() -> None:
    # Small enough for 1 of 16 to be held out unevenly: the lengths must not notice.
    batch = copy_task(min_length=1, max_length=5, vocab_size=3).draw(10_007, generator())
    counts = (batch.source != 0).sum(1).bincount(minlength=7)[2:].numpy()
    assert np.abs(counts - 10_007 / 5).max() < 5 * (10_007 * 0.16) ** 0.5


def test_what_is_tested_is_never_drawn() -> None:
    task = sort_task(max_length=3, vocab_size=5)  # 155 sequences: each is drawn often
    drawn = torch.unique(task.draw(20_011, generator()).source, dim=0)
    sizes = {"train": 143, "validation": 6, "test": 6}
    assert sum(sizes.values()) == 5 + 5**2 + 5**3
    sets = {split: task.fixed_split(split, size).source for split, size in sizes.items()}
    assert {split: len(torch.unique(rows, dim=0)) for split, rows in sets.items()} == sizes
    assert torch.equal(torch.unique(sets["train"], dim=0), drawn)


def test_what_is_held_out_is_so_from_every_task_and_size() -> None:
    tested = copy_task(max_length=5, vocab_size=4).fixed_split("test", 71).source
    # The same lengths and symbols in a task that could have longer ones.
    drawn = sort_task(max_length=5, vocab_size=4).draw(5003, generator()).source
    assert not {tuple(row) for row in drawn.tolist()} & {tuple(row) for row in tested.tolist()}
    wider = torch.nn.functional.pad(tested.masked_fill(tested == 2, 0), (0, 17))
    assert is_in("test", wider).all()


def test_smaller_split_than_asked_for_warns_once(tmp_path: Path) -> None:
    task = copy_task(max_length=2, vocab_size=10)
    with pytest.warns(UserWarning, match=r"500 sequences .* test split .* only \d+"):
        first = task.fixed_split("test", 500, cache_dir=tmp_path)
    assert 0 < len(first.source) < 500


def test_draw_does_not_touch_the_global_random_state() -> None:
    before = torch.get_rng_state()
    task = copy_task()
    task.draw(7, generator())
    task.fixed_split("test", 11)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_rule_with_a_longer_target() -> None:
    def twice(source: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        columns = torch.arange(2 * source.shape[1]).expand(len(source), -1)
        again = source.gather(1, (columns % lengths[:, None]))
        return again.masked_fill(columns >= 2 * lengths[:, None], 0)

    task = GeneratedTask("twice", twice, min_length=1, max_length=3, vocab_size=5, longest_target=6)
    batch = task.draw(101, generator())
    assert task.max_target_length == batch.target.shape[1] == 7
    for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True):
        assert symbols(target) == 2 * symbols(source)


def test_bad_arguments_raise_when_the_task_is_made() -> None:
    with pytest.raises(ValueError, match="max_length must be at least min_length"):
        copy_task(min_length=5, max_length=4)
    with pytest.raises(ValueError, match="split is empty"):
        sort_task(max_length=1, vocab_size=1)


def test_no_warning_by_default() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy_task().fixed_split("test", 2000)
