"""Every generated task against a second solver, its own worked example, and its chance level."""

import importlib
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import DictConfig, OmegaConf

from mha_lab import config
from mha_lab.build import build
from mha_lab.errors import UserError
from mha_lab.tasks.batch import Batch, blanks, end_rows
from mha_lab.tasks.fixed_sets import FixedSets
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.vocabulary import Vocabulary
from tests.tasks.solvers import SOLVERS

TASKS = [name for name in config.options("task") if name in SOLVERS]
every_task = pytest.mark.parametrize("name", TASKS)


@cache
def option(name: str) -> DictConfig:
    return OmegaConf.load(config.config_folder() / "task" / f"{name}.yaml")


def made(name: str, **changes: Any) -> GeneratedTask:
    """The task of a YAML; Hydra's composition of a whole run would take most of the time."""
    module, _, function = option(name)._target_.rpartition(".")
    arguments = {k: v for k, v in option(name).items() if k != "_target_"}
    return getattr(importlib.import_module(module), function)(**{**arguments, **changes})


@cache
def default(name: str) -> GeneratedTask:
    """The task of a YAML as it is, made once for all tests that leave it so."""
    return made(name)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def tokens(vocabulary: Vocabulary, row: list[int]) -> list[str]:
    """What stands before <eos>; "_" where nothing does."""
    return ["_" if id_ == 0 else vocabulary.tokens[id_] for id_ in row[: row.index(2)]]


def pairs(task: GeneratedTask, batch: Batch) -> list[tuple[list[str], list[str]]]:
    return [
        (tokens(task.vocabulary, source), tokens(task.vocabulary, target))
        for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True)
    ]


def test_there_are_twenty_nine() -> None:
    assert sorted(TASKS) == sorted(SOLVERS)
    assert len(TASKS) == 29
    assert set(config.options("task")) - set(TASKS) == {"files"}


@every_task
@pytest.mark.filterwarnings("ignore:.*sequences were asked for")
def test_the_oracle_agrees_with_a_plain_solver(name: str) -> None:
    task = default(name)
    for batch in (task.draw(199, generator()), task.fixed_split("test", 53)):
        for source, target in pairs(task, batch):
            assert target == SOLVERS[name](source), source


@every_task
def test_any_range_of_lengths(name: str) -> None:
    for low, high in [(1, 9), (11, 11), (13, 23)]:
        task = default(name).at_lengths(min_length=low, max_length=high)
        batch = task.draw(61, generator())
        assert batch.source.shape[1] == task.max_source_length == high + 1
        assert batch.target.shape[1] == task.max_target_length
        lengths = set()
        for source, target in pairs(task, batch):
            assert target == SOLVERS[name](source), source
            lengths.add(len(source))
        assert min(lengths) >= low - (name == "modular_arithmetic")
        assert max(lengths) <= high
        assert len(lengths) > (high - low) // 3


@every_task
def test_the_worked_example(name: str) -> None:
    task = default(name)
    module = importlib.import_module(task_module(name))
    source, target = re.search(r"Example: ``(.*)`` → ``(.*)``", module.__doc__).groups()
    ids = torch.tensor([task.vocabulary.encode(source.split())])
    assert Vocabulary.UNK not in ids
    lengths = torch.tensor([ids.shape[1]])
    answer = end_rows(task.rule(ids, lengths), lengths if task.along else None)
    assert tokens(task.vocabulary, answer[0].tolist()) == target.split()
    assert SOLVERS[name](source.split()) == target.split()


def task_module(name: str) -> str:
    """Where the task is made; copy and sort are named elsewhere too."""
    module, _, function = option(name)._target_.rpartition(".")
    return getattr(importlib.import_module(module), function).__module__


@every_task
def test_docstring_has_rule_and_source(name: str) -> None:
    text = importlib.import_module(task_module(name)).__doc__
    assert re.match(r"[^\n]+: [^\n]+[.?]\n\n", text), "one line: name, colon, rule"
    assert re.search(r"\n\nSource: \w+", text)


@every_task
def test_chance_is_what_uniform_guessing_reaches(name: str) -> None:
    task = default(name)
    target = task.draw(3001, generator()).target
    symbols = target[target > Vocabulary.EOS]
    answers = symbols.unique()
    assert task.chance == pytest.approx(1 / len(answers))
    guesses = answers[torch.randint(len(answers), symbols.shape, generator=generator(1))]
    share = float((guesses == symbols).double().mean())
    spread = (task.chance * (1 - task.chance) / len(symbols)) ** 0.5
    assert abs(share - task.chance) < 5 * spread


@every_task
@pytest.mark.filterwarnings("ignore:.*sequences were asked for")
def test_a_set_read_from_the_cache_is_the_set_that_was_made(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = default(name)
    first = task.fixed_split("validation", 23, cache_dir=tmp_path)
    monkeypatch.setattr(FixedSets, "make", None)  # it must not be made again
    again = task.fixed_split("validation", 23, cache_dir=tmp_path)
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one[:, : other.shape[1]], other)
        assert not one[:, other.shape[1] :].any()


def test_targets_of_old_configs_are_still_found_and_trusted() -> None:
    from mha_lab.config import trust
    from mha_lab.tasks import copy, sort

    own = trust.own_targets(config.config_folder())
    assert {"mha_lab.tasks.copy.copy_task", "mha_lab.tasks.sort.sort_task"} <= own

    assert copy.copy_task().name == "copy"
    assert sort.sort_task().name == "sort"


def test_blanks_are_the_padding_before_the_end() -> None:
    target = torch.tensor([[0, 5, 0, 2, 0], [5, 2, 0, 0, 0], [0, 0, 2, 0, 0]])
    expected = [[1, 0, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 0, 0, 0]]
    assert blanks(target).int().tolist() == expected


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["task=unique_copy", "task.max_length=41"], "max_length=41 and vocab_size=40"),
        (["task=unique_sort", "task.vocab_size=3"], "max_length=10 and vocab_size=3"),
        (["task=mqar", "task.vocab_size=9"], "vocab_size=9 and pairs=4"),
        (["task=flip_flop", "task.write=0.3"], "ignore=0.8 and write=0.3"),
        (["task=selective_copy", "task.vocab_size=1"], "at least 2, one symbol and the noise"),
        (["task=parity_check", "task.max_length=1"], "split is empty"),
        (["task=missing_duplicate", "task.max_length=1"], "split is empty"),
        (["task=mingpt_sort", "task.max_length=5"], "max_length must be at least min_length"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(overrides: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said) as raised:
        build(config.compose(overrides, run_dir="unused"), "task")
    assert "\n" not in str(raised.value)


def test_minted_distributions() -> None:
    """What is drawn in a way of its own: its shares, against the probabilities in the papers."""
    source = made("flip_flop", min_length=32).draw(2003, generator()).source
    orders = source[:, 2:30:2]
    shares = [(orders == id_).double().mean() for id_ in (10, 8, 9)]  # i, w, r
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.01)
    few = made("mingpt_sort", vocab_size=6, min_length=5, max_length=5)
    kinds = torch.tensor([len(set(row)) - 1 for row in few.draw(4001, generator()).source.tolist()])
    # Of 7776 rows, 2 kinds or fewer have 456; a row is rejected with half the others' weight.
    accepted = 456 / 7776 + 0.5 * 7320 / 7776
    assert float((kinds <= 2).double().mean()) == pytest.approx(456 / 7776 / accepted, abs=0.02)


def test_gaps_follow_the_power_law() -> None:
    task = made("mqar", pairs=1, min_length=18, max_length=18, random_fillers=False)
    source = task.draw(6007, generator()).source[:, 2:18:2]
    places = (source > 5).int().argmax(1).bincount(minlength=8).double()
    law = torch.arange(1, 9, dtype=torch.double) ** (0.01 - 1)
    assert (places / places.sum()).tolist() == pytest.approx((law / law.sum()).tolist(), abs=0.02)


def test_no_warning_by_default() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in TASKS:
            if name != "mingpt_sort":
                made(name)
