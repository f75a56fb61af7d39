"""Every option of the config folders keeps its contract: a new YAML is tested by being there."""

import json
from pathlib import Path

import pytest
import torch

from mha_lab import config
from mha_lab.build import build, model_maker
from mha_lab.testing import (
    attention_checks,
    check_attention,
    check_model,
    check_task,
    position_checks,
)


def parts() -> list[str]:
    groups = [group for group in config.groups() if group.startswith("attention/")]
    return [f"{group}={option}" for group in groups for option in config.options(group)]


def made(group: str, option: str, tmp_path: Path, *overrides: str) -> object:
    words = [f"{group}={option}", f"data.cache_dir={tmp_path}", *overrides]
    return build(config.compose(words, run_dir=tmp_path), group)


@pytest.mark.parametrize("variant", config.options("attention"))
def test_attention(variant: str, tmp_path: Path) -> None:
    check_attention(made("attention", variant, tmp_path))


@pytest.mark.parametrize("part", parts())
def test_part_of_attention(part: str, tmp_path: Path) -> None:
    """In a module that is else composed of what is chosen by default."""
    words = [part, f"data.cache_dir={tmp_path}"]
    check_attention(build(config.compose(words, run_dir=tmp_path), "attention"))


@pytest.mark.parametrize(
    "words",
    [
        ["attention=window", "attention.pattern.size=2"],
        ["attention=dilated_window", "attention.pattern.size=2", "attention.pattern.dilation=2"],
        [
            "attention=global_window",
            "attention.pattern.size=2",
            "attention.pattern.global_tokens=1",
        ],
        ["attention=composed", "attention/pattern=prefix", "attention.pattern.size=2"],
        ["attention=top_k", "attention.weighting.k=2"],
    ],
)
def test_parts_so_small_that_they_leave_keys_out(words: list[str], tmp_path: Path) -> None:
    """At their defaults, they would see all of a contract's few keys."""
    check_attention(build(config.compose(words, run_dir=tmp_path), "attention"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "choice", [f"attention={v}" for v in config.options("attention")] + parts()
)
def test_attention_compiles(choice: str, tmp_path: Path) -> None:
    factory = build(config.compose([choice], run_dir=tmp_path), "attention")
    for check in attention_checks(slow=True):
        check(factory)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["custom", "sparsemax"])
def test_code_written_for_the_graphs_gives_the_same(variant: str, tmp_path: Path) -> None:
    """One that is a kernel of torch's, and one with a backward pass of its own."""
    module = made("attention", variant, tmp_path)(8, 2)
    x = torch.randn(2, 5, 8)
    expected = module(x, x, x, need_weights=False)[0]
    module.compile(fullgraph=True)
    torch.testing.assert_close(module(x, x, x, need_weights=False)[0], expected)


@pytest.mark.parametrize("encoding", config.options("position"))
def test_position(encoding: str, tmp_path: Path) -> None:
    factory = made("position", encoding, tmp_path)
    for check in position_checks():
        check(factory)


@pytest.mark.parametrize("model", config.options("model"))
@pytest.mark.parametrize("words", [[], ["attention=composed", "position=rotary"]])
def test_model(model: str, words: list[str], tmp_path: Path) -> None:
    check_model(model_maker(config.compose([f"model={model}", *words], run_dir=tmp_path)))


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


@pytest.mark.parametrize(
    "group", ["attention", "position", "model", "task", *(g for g in config.groups() if "/" in g)]
)
def test_every_option_says_what_it_is(group: str) -> None:
    for option, line in config.options(group).items():
        assert 10 < len(line) < 100, f"configs/{group}/{option}.yaml needs a first comment"
