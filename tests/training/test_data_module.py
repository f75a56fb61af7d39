"""The data module: what it hands out, alone, under a Trainer, and after a resume."""

import os
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import Tensor, nn

from mha_lab.tasks.batch import Batch
from mha_lab.tasks.copy import copy_task
from mha_lab.tasks.sort import sort_task
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.training.data_module import EVALUATION_BATCH, TaskDataModule


@pytest.fixture
def make(tmp_path: Path):
    def with_defaults(**options: Any) -> TaskDataModule:
        task = options.pop("task", None) or copy_task(max_length=7, vocab_size=5)
        options = {"batch_size": 11, "seed": 3, **options}
        return TaskDataModule(task, cache_dir=tmp_path / "cache", **options)

    return with_defaults


def first(data: TaskDataModule, n: int) -> list[Batch]:
    return list(islice(data.train_dataloader(), n))


def same(some: list[Batch], others: list[Batch]) -> bool:
    return len(some) == len(others) and all(
        torch.equal(a.source, b.source) and torch.equal(a.target, b.target)
        for a, b in zip(some, others, strict=True)
    )


def rows_of(batches: list[Batch]) -> list[tuple[int, ...]]:
    return [tuple(id_ for id_ in row if id_) for b in batches for row in b.source.tolist()]


class Place:
    """Stands in for the Trainer of one process of several."""

    def __init__(self, rank: int, world_size: int) -> None:
        self.global_rank, self.world_size = rank, world_size


def test_training_follows_from_the_seed(make) -> None:
    batches = first(make(), 5)
    assert same(batches, first(make(), 5))
    assert not any(same([a], [b]) for a, b in zip(batches, first(make(seed=4), 5), strict=True))
    assert len(set(map(tuple, map(rows_of, ([b] for b in batches))))) == 5
    assert all(b.source.shape == (11, 8) for b in batches)


def test_training_does_not_depend_on_the_random_state_and_leaves_it(make) -> None:
    torch.manual_seed(1)
    batches = first(make(), 3)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert same(batches, first(make(), 3))
    assert torch.equal(torch.get_rng_state(), before)


def test_fixed_sets_do_not_depend_on_the_seed(make) -> None:
    assert same(make(seed=1).val_dataloader(), make(seed=2).val_dataloader())
    assert same(make(seed=1).test_dataloader(), make(seed=2).test_dataloader())


def test_processes_take_turns(make) -> None:
    alone = first(make(), 6)
    for rank in range(2):
        data = make()
        data.trainer = Place(rank, 2)
        assert same(first(data, 3), alone[rank::2])


@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("size", [7, EVALUATION_BATCH + 1, 2 * EVALUATION_BATCH + 1])
def test_each_tested_sequence_is_in_one_batch(make, world_size: int, size: int) -> None:
    task = copy_task()
    expected = rows_of([task.fixed_split("test", size)])
    lengths, found = [], []
    for rank in range(world_size):
        data = make(task=task, test_size=size)
        data.trainer = Place(rank, world_size)
        batches = data.test_dataloader()
        assert all(0 < len(b.source) <= EVALUATION_BATCH for b in batches)
        lengths.append(len(batches))
        found += rows_of(batches)
    assert len(set(lengths)) == 1
    assert sorted(found) == sorted(expected)


def test_too_few_sequences_for_the_processes(make) -> None:
    data = make(validation_size=2)
    data.trainer = Place(0, 3)
    with pytest.raises(ValueError, match="validation set has 2 sequences, too few for 3 processes"):
        data.val_dataloader()


def test_finite_set_comes_whole_in_each_pass_and_in_another_order(make) -> None:
    data = make(train_size=29)  # 11 + 11 + 7
    batches = first(data, 6)
    assert [len(b.source) for b in batches] == [11, 11, 7] * 2
    one, two = rows_of(batches[:3]), rows_of(batches[3:])
    assert len(set(one)) == 29
    assert set(one) == set(two)
    assert one != two
    assert same(batches, first(make(train_size=29), 6))
    other = first(make(train_size=29, seed=4), 3)
    assert set(rows_of(other)) == set(one)
    assert rows_of(other) != one
    assert not set(one) & set(rows_of(data.test_dataloader()))


def test_finite_set_smaller_than_a_batch_or_than_asked_for(make) -> None:
    assert [len(b.source) for b in first(make(train_size=3), 2)] == [3, 3]
    small = copy_task(max_length=2, vocab_size=7)
    with pytest.warns(UserWarning, match="1000 sequences were asked for"):
        batches = first(make(task=small, train_size=1000), 9)
    assert len({len(b.source) for b in batches[:4]}) == 1


class FewRows:
    """A task with five rows; source and target of row i are i + 5."""

    vocabulary = Vocabulary(list("abcde"))
    max_source_length = max_target_length = 3
    training_size = 5

    def draw(self, n: int, generator: torch.Generator) -> Batch:
        raise AssertionError("its rows come in passes")

    def fixed_split(self, split: str, size: int, *, cache_dir: Path | None = None) -> Batch:
        rows = torch.tensor([[5, 2, 0], [6, 2, 0], [7, 2, 0], [8, 2, 0], [9, 9, 2]])[:size]
        return Batch(rows, rows)


def test_a_task_with_a_training_set_of_its_own(make) -> None:
    data = make(task=FewRows(), batch_size=2)
    batches = first(data, 3)
    assert sorted(rows_of(batches)) == [(5, 2), (6, 2), (7, 2), (8, 2), (9, 9, 2)]
    assert {b.source.shape[1] for b in batches} == {2, 3}  # no wider than the longest
    assert sorted(rows_of(first(make(task=FewRows(), batch_size=2, train_size=2), 1))) == [
        (5, 2),
        (6, 2),
    ]
    with pytest.raises(ValueError, match=r"train_size must be at most 5, .* got 6"):
        make(task=FewRows(), train_size=6)


def test_evaluation_batches_are_no_wider_than_their_longest(make) -> None:
    (batch,) = make(task=FewRows(), validation_size=2).val_dataloader()
    assert batch.source.tolist() == [[5, 2], [6, 2]]
    assert batch.target.tolist() == [[5, 2], [6, 2]]


@pytest.mark.parametrize("name", ["batch_size", "validation_size", "test_size", "train_size"])
def test_sizes_are_checked(make, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        make(**{name: 0})


def test_seed_is_checked(make) -> None:
    with pytest.raises(ValueError, match="seed must be at least 0, got -1"):
        make(seed=-1)


def test_stream_has_no_length_and_can_be_iterated_again(make) -> None:
    stream = make().train_dataloader()
    assert not hasattr(stream, "__len__")
    assert same(list(islice(stream, 3)), list(islice(stream, 3)))


# Under a Trainer ----------------------------------------------------------------------------------


class Listener(pl.LightningModule):
    """Notes the batches that it is given, and trains one number."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.heard: list[Batch] = []

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        self.heard.append(batch)
        return self.weight * batch.source.float().mean()

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        pass

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(
    data: TaskDataModule, folder: Path, steps: int, *, resume: Path | None = None, **options: Any
) -> list[Batch]:
    trainer = pl.Trainer(
        default_root_dir=folder,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        max_steps=steps,
        max_epochs=-1,
        callbacks=[ModelCheckpoint(folder, save_last=True, **options.pop("checkpoint", {}))],
        **{"val_check_interval": 3, "check_val_every_n_epoch": None, **options},
    )
    module = Listener()
    trainer.fit(module, datamodule=data, ckpt_path=resume and str(resume))
    return module.heard


@pytest.mark.parametrize("train_size", [None, 29])
@pytest.mark.parametrize(
    "checkpoint",
    [{}, {"every_n_train_steps": 2}],
    ids=["at validation", "between validations"],
)
@pytest.mark.parametrize(
    "options", [{}, {"limit_train_batches": 5}, {"accumulate_grad_batches": 2}], ids=str
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_resumed_training_goes_on_exactly(
    make,
    tmp_path: Path,
    train_size: int | None,
    checkpoint: dict[str, int],
    options: dict[str, int],
) -> None:
    """The checkpoint of a run that went further is resumed: what came before it is not repeated."""
    per_step = options.get("accumulate_grad_batches", 1)
    whole = fit(make(train_size=train_size), tmp_path / "whole", 12, **options)
    assert same(whole, first(make(train_size=train_size), 12 * per_step))
    options = {**options, "checkpoint": checkpoint}
    before = fit(make(train_size=train_size), tmp_path / "part", 8, **options)
    last = tmp_path / "part" / "last.ckpt"
    loops = torch.load(last, weights_only=True)["loops"]["fit_loop"]["state_dict"]
    (kept,) = (state["used"] for state in loops["combined_loader"])
    assert 0 < kept <= len(before)
    after = fit(make(train_size=train_size), tmp_path / "part", 12, resume=last, **options)
    assert same(before[:kept] + after, whole)


class Ranks(Listener):
    """Writes down what each process of two was given."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.tested: list[Batch] = []

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        self.tested.append(batch)

    def on_test_end(self) -> None:
        file = self.folder / f"{self.trainer.global_rank}.pt"
        torch.save((rows_of(self.heard), rows_of(self.tested)), file)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_processes_of_a_real_trainer(make, tmp_path: Path) -> None:
    data = make(task=sort_task(), test_size=1003)
    trainer = pl.Trainer(
        default_root_dir=tmp_path,
        accelerator="cpu",
        devices=2,
        strategy="ddp_fork",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        max_steps=3,
    )
    module = Ranks(tmp_path)
    trainer.fit(module, datamodule=data)
    trainer.test(module, datamodule=data, verbose=False)
    results = [torch.load(tmp_path / f"{rank}.pt", weights_only=False) for rank in range(2)]
    tested = results[0][1] + results[1][1]
    assert sorted(tested) == sorted(rows_of([data.task.fixed_split("test", 1003)]))
