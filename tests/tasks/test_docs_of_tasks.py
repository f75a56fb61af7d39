"""docs/tasks.md is true: its code runs, its numbers are those of the defaults."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from mha_lab import config
from mha_lab.tasks.copy import copy_task
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.testing import check_task

DOCS = Path(__file__).parents[2] / "docs" / "tasks.md"


@pytest.fixture(scope="module")
def text() -> str:
    return DOCS.read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_example_draws_sorted_rows(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(line[4:] for line in blocks(text)[0].splitlines())
    exec(code, {})
    rows = [line.split(" -> ") for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 3
    assert all(target == " ".join(sorted(source.split())) for source, target in rows)


def test_the_task_that_it_adds_keeps_the_contract(text: str) -> None:
    module: dict[str, Any] = {}
    exec(blocks(text)[1], module)
    task = module["rotate_task"]()
    assert isinstance(task, GeneratedTask)
    check_task(task)
    rows = torch.tensor([[5, 6, 7, 0], [8, 9, 0, 0]])
    rotated = module["target_of"](rows, torch.tensor([3, 2]))
    assert rotated.tolist() == [[6, 7, 5, 0], [9, 8, 0, 0]]


def test_sizes_of_the_default_test_set(text: str) -> None:
    lengths = (copy_task().fixed_split("test", 2000).source != 0).sum(1) - 1
    counts = lengths.bincount()[1:].tolist()
    few = [int(n) for n in re.search(r"has (\d+), (\d+) and (\d+) sequences", text).groups()]
    assert counts[:3] == few
    assert set(counts[3:]) == {277, 278}


def test_the_sentence_of_the_empty_split(text: str) -> None:
    said = " ".join(re.search(r"`(the validation split.*?)`", text, re.DOTALL)[1].split())
    with pytest.raises(ValueError, match="split is empty") as raised:
        copy_task(min_length=1, max_length=2, vocab_size=1)
    assert str(raised.value).replace("test split", "validation split").startswith(said)


def test_the_table_of_rules_is_what_docstrings_and_configs_say(text: str) -> None:
    module = runpy.run_path(str(DOCS.with_name("task_tables.py")))
    fresh = module["replaced"](text, "rules", module["rules"]())
    assert fresh == text, "write it again: python docs/task_tables.py rules"
    assert fresh.count("| `") >= 30


def test_there_is_a_recipe_for_every_task() -> None:
    assert set(config.options("task")) - {"files"} <= set(config.options("experiment"))
