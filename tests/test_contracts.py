"""Every option of the config folders keeps its contract: a new YAML is tested by being there."""

import json
from pathlib import Path
from typing import Any

import pytest

from mha_lab import config
from mha_lab.build import build
from mha_lab.models.checks import check_use
from mha_lab.testing import (
    attention_checks,
    check_task,
    position_checks,
)


def made(group: str, option: str, tmp_path: Path, *overrides: str) -> object:
    words = [f"{group}={option}", f"data.cache_dir={tmp_path}", *overrides]
    return build(config.compose(words, run_dir=tmp_path), group)


@pytest.mark.parametrize("variant", config.options("attention"))
def test_attention(variant: str, tmp_path: Path) -> None:
    factory = made("attention", variant, tmp_path)
    if looks_back_only(factory):
        pytest.skip(
            "the checks call without a causal mask; tests/attention/test_states.py does not"
        )
    for check in attention_checks():
        check(factory)


def looks_back_only(factory: Any) -> bool:
    try:
        check_use(factory(12, 3, dropout=0.0), is_causal=False, is_cross=False)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("encoding", config.options("position"))
def test_position(encoding: str, tmp_path: Path) -> None:
    factory = made("position", encoding, tmp_path)
    for check in position_checks():
        check(factory)


@pytest.mark.parametrize("task", config.options("task"))
def test_task(task: str, tmp_path: Path) -> None:
    check_task(made("task", task, tmp_path, *own_files(task, tmp_path)))


def own_files(task: str, folder: Path) -> list[str]:
    """What the task of files needs to be made at all."""
    if task != "files":
        return []
    words = []
    for number, split in enumerate(("train", "validation", "test")):
        rows = [f"{'a ' * n}{'bcd'[number]} a b c d" for n in range(1, 8)]
        file = folder / f"{split}.jsonl"
        lines = [json.dumps({"source": row, "target": row[::-1]}) for row in rows]
        file.write_text("\n".join(lines))
        words.append(f"task.{split}={file}")
    return words


@pytest.mark.parametrize("group", ["attention", "position", "task"])
def test_every_option_says_what_it_is(group: str) -> None:
    for option, line in config.options(group).items():
        assert 10 < len(line) < 100, f"configs/{group}/{option}.yaml needs a first comment"
