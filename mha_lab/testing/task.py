"""What the harness relies on in a task; the interface is ``mha_lab.tasks.task.Task``."""

import warnings
from typing import Any

import torch
from torch import Tensor

from mha_lab.tasks.batch import Batch
from mha_lab.tasks.splits import SPLITS, Split
from mha_lab.tasks.task import Task
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.testing.running import Check, require, run

SIZE = 101  # sequences of a fixed set
DRAWN = 1009  # sequences of a draw

_seen: list[Any] = []  # the last task, and what it gave


def check_task(task: Task) -> None:
    """Run every check on a task.

    Raises:
        AssertionError: naming each check that failed, and why.
    """
    run(task_checks(), task)


def task_checks() -> list[Check]:
    """The checks, each a function of the task, to be run one by one."""
    return [
        rows_end_in_eos_then_padding,
        ids_are_of_the_vocabulary,
        lengths_stay_within_the_longest,
        draws_follow_from_the_generator,
        fixed_sets_are_always_the_same,
        training_size_is_told,
        answers_along_a_sequence_end_with_it,
        chance_is_that_of_guessing,
        nothing_tested_is_trained_on,
    ]


def rows_end_in_eos_then_padding(task: Task) -> None:
    """Each row: tokens, one <eos>, padding; no padding, <bos> or <sep> before.

    A target may hold padding before its <eos>, where nothing is asked, if ``task.along`` is True.
    """
    for name, rows in _all_rows(task):
        is_eos = rows == Vocabulary.EOS
        require(bool((is_eos.sum(1) == 1).all()), f"{name}: each row must hold <eos> once")
        is_after = is_eos.cumsum(1).bool() & ~is_eos
        is_padding = rows == Vocabulary.PAD
        require(bool(is_padding[is_after].all()), f"{name}: only padding may stand after <eos>")
        if not (_is_along(task) and name.endswith("target")):
            require(
                bool((is_padding == is_after).all()),
                f"{name}: padding must stand after <eos> and nowhere else",
            )
        reserved = (rows == Vocabulary.BOS) | (rows == Vocabulary.SEP)
        require(not reserved.any(), f"{name}: <bos> and <sep> are for the model to add")


def ids_are_of_the_vocabulary(task: Task) -> None:
    """Ids are int64, from 0 to the vocabulary's size."""
    for name, rows in _all_rows(task):
        require(rows.dtype == torch.int64, f"{name}: ids must be int64, got {rows.dtype}")
        low, high = int(rows.min()), int(rows.max())
        require(
            low >= 0 and high < len(task.vocabulary),
            f"{name}: ids must lie between 0 and {len(task.vocabulary) - 1}, got {low} to {high}",
        )


def lengths_stay_within_the_longest(task: Task) -> None:
    """No source or target is longer than the task says, <eos> counted."""
    for name, rows in _all_rows(task):
        kind = name.split()[-1]
        limit = task.max_source_length if kind == "source" else task.max_target_length
        longest = int((rows == Vocabulary.EOS).int().argmax(1).max()) + 1
        require(
            longest <= limit, f"{name}: max_{kind}_length is {limit}, but one is {longest} long"
        )


def draws_follow_from_the_generator(task: Task) -> None:
    """The same generator gives the same n rows; another gives others; torch's own plays no part."""
    first = _look(task)["draw"]
    torch.manual_seed(1)
    require(_equal(first, _draw(task, seed=0)), "draws must depend on the generator alone")
    require(not _equal(first, _draw(task, seed=1)), "another seed must draw other sequences")
    for rows in first:
        require(len(rows) == DRAWN, f"draw(n) must give n={DRAWN} rows, got {len(rows)}")


def fixed_sets_are_always_the_same(task: Task) -> None:
    """Two calls give the same set, whatever torch's random state; sources match targets."""
    for split in SPLITS:
        first = _look(task)[split]
        torch.manual_seed(1)
        require(_equal(first, _fixed(task, split)), f"{split}: two calls must give the same")
        require(len(first.source) > 0, f"{split}: there must be a sequence")
        require(
            len(first.source) == len(first.target),
            f"{split}: there must be a target for each source, got {len(first.target)} for "
            f"{len(first.source)}",
        )


def training_size_is_told(task: Task) -> None:
    """None, or how many training sequences there are; the training set is then of that size."""
    size = task.training_size
    if size is not None:
        rows = len(task.fixed_split("train", size).source)
        require(rows == size, f"training_size is {size}, but the training set has {rows} sequences")


def answers_along_a_sequence_end_with_it(task: Task) -> None:
    """Where ``task.along`` is True, targets are as long as their sources, and ask something."""
    if not _is_along(task):
        return
    for name, batch in _look(task).items():
        ends = [(rows == Vocabulary.EOS).int().argmax(1) for rows in batch]
        require(torch.equal(*ends), f"{name}: each target must end where its source does")
        asked = int((batch.target > Vocabulary.EOS).sum())
        require(asked > 0, f"{name}: no target asks for a symbol")


def chance_is_that_of_guessing(task: Task) -> None:
    """Where a task has ``chance``, one divided by it is at least the number of its answers."""
    chance = getattr(task, "chance", None)
    if chance is None:
        return
    require(0 < chance <= 1, f"chance must be above 0 and at most 1, got {chance}")
    target = _look(task)["draw"].target
    answers = len(set(target[target > Vocabulary.EOS].tolist()))
    require(
        answers <= round(1 / chance),
        f"chance is {chance}, that of {round(1 / chance)} answers, but targets have {answers}",
    )


def nothing_tested_is_trained_on(task: Task) -> None:
    """No source of validation or test is in the other, in the training set, or drawn."""
    sources = {name: _sequences(batch) for name, batch in _look(task).items()}
    held_out: tuple[Split, ...] = ("validation", "test")
    for split in held_out:
        for name, others in sources.items():
            both = sources[split] & others if name != split else set()
            shown = " ".join(task.vocabulary.decode(min(both))) if both else ""
            require(not both, f"{len(both)} sources of {split} are in {name} too, such as {shown}")


def _all_rows(task: Task) -> list[tuple[str, Tensor]]:
    named = _look(task).items()
    return [(f"{k} {part}", rows) for k, b in named for part, rows in b._asdict().items()]


def _look(task: Task) -> dict[str, Batch]:
    """What the task gives when it is first asked: its fixed sets, and a draw.

    Remembered of the last task alone, for all checks look at the same.
    """
    if not (_seen and _seen[0] is task):
        torch.manual_seed(0)
        found: dict[str, Batch] = {split: _fixed(task, split) for split in SPLITS}
        _seen[:] = task, {**found, "draw": _draw(task, seed=0)}
    looked: dict[str, Batch] = _seen[1]
    return looked


def _fixed(task: Task, split: Split) -> Batch:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a task that has fewer than SIZE says so
        return task.fixed_split(split, SIZE)


def _is_along(task: Task) -> bool:
    return bool(getattr(task, "along", False))


def _draw(task: Task, *, seed: int) -> Batch:
    return task.draw(DRAWN, torch.Generator().manual_seed(seed))


def _equal(one: Batch, other: Batch) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def _sequences(batch: Batch) -> set[tuple[int, ...]]:
    return {tuple(id_ for id_ in row if id_ != Vocabulary.PAD) for row in batch.source.tolist()}
