"""bench zoo: every option of the config folders has a row; what cannot be is said at once."""

import csv
import re
from pathlib import Path

import pytest
import torch

from mha_lab.bench import zoo
from mha_lab.bench.timing import alternate
from mha_lab.bench.zoo_cases import Case, cases, made, step
from mha_lab.config import options
from mha_lab.errors import UserError

CPU = torch.device("cpu")


@pytest.mark.slow
def test_every_mechanism_and_encoding_runs_forward_and_backward() -> None:
    found = cases(None)
    assert {(case.group, case.name) for case in found} == {
        (group, name) for group in ("attention", "position") for name in options(group)
    }
    for case in found:
        module = made(case, (2, 7, 24, 4), CPU)
        step(module, (2, 7, 24, 4), CPU)()


@pytest.mark.parametrize("name", ["learned", "randomized"])
def test_encodings_with_a_longest_length_are_told_of_a_longer_one(name: str) -> None:
    module = made(Case("position", name), (1, 3001, 8, 2), CPU)
    assert module.embedding(torch.zeros(1, 3001, 8)).shape == (1, 3001, 8)


def test_rows_are_written_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "zoo.csv"
    words = ["seconds=1", "shapes=1x3x8x2", "lengths=5,11", "only=retention", f"csv={file}"]
    words += ["device=cpu", "clock=cpu"]
    assert zoo.main([*words, "table=markdown"]) == 0
    printed = capsys.readouterr().out
    assert "| attention=retention | causal | linear in the length" in printed
    first, second = re.findall(
        r"\| attention=retention \| 1, +5, 256, 8 .*|.* 1, 11, 256, 8 .*", printed
    )
    assert first.split("|")[-2].strip() == ""  # no length before
    assert float(second.split("|")[-2]) > 0
    rows = list(csv.DictReader(file.open()))
    assert [(row["option"], row["shape"]) for row in rows] == [
        ("attention=retention", "1, 3, 8, 2"),
        ("attention=retention", "1, 5, 256, 8"),
        ("attention=retention", "1, 11, 256, 8"),
    ]
    assert all(float(row["time"]) > 0 and float(row["memory"]) > 0 for row in rows)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["only=entmaxx"], "only=entmaxx is no mechanism and no encoding"),
        (["lengths=1"], "lengths must be whole numbers from 2 on"),
        (["lengths=2048,x"], "lengths must be whole numbers from 2 on"),
        (["clock=sun"], "clock must be wall or cpu, got 'sun'"),
        (["table=html"], "table must be markdown, got 'html'"),
        (["second=1"], "unknown argument 'second=1'"),
    ],
)
def test_what_cannot_be_is_said(words: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        zoo.main(words)


def test_calls_take_turns() -> None:
    order: list[str] = []
    times = alternate(
        lambda: order.append("a"), lambda: order.append("b"), lambda: order.append("c"),
        seconds=0, device=CPU, least=2, warm_up=1,
    )  # fmt: skip
    assert order == ["a", "b", "c"] * 3
    assert len(times) == 3
