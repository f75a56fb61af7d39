"""A table in a terminal that is narrower than it: nothing is cut off, no word is broken."""

import pytest
from rich.console import Console

from mha_lab.table_shape import fitted, short_lines

COLUMNS = ("task", "title", "test/sequence_accuracy", "steps to solve")
ROWS = [
    ("copy", "Copy against sort beyond the length", "1.0000 ± 0.0000", "825 ± 66 (3 of 7)"),
    ("mingpt_sort", "Sort", "0.9990", "–"),
]


def _lines(width: int | None, *, spare: tuple[str, ...] = ()) -> list[str]:
    table, needed = fitted(COLUMNS, ROWS, numeric=2, spare=spare, width=width)
    console = Console(width=max(needed, width or 0), color_system=None)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


def _words(lines: list[str]) -> set[str]:
    return {word for line in lines for word in line.split() if "─" not in word}


@pytest.mark.parametrize("width", [None, 200, 83, 71, 61, 53, 49])
def test_every_word_is_there_whole_and_no_line_is_wider_than_the_terminal(width: int | None):
    lines = _lines(width)

    assert _words(lines) == _words(_lines(None))
    assert width is None or max(map(len, lines)) <= width


def test_a_name_goes_on_after_its_underscore_where_nothing_else_helps():
    assert _words(_lines(43)) >= {"sequence_", "accuracy"}
    assert max(map(len, _lines(43))) <= 43


def test_without_a_terminal_each_row_is_one_line():
    body = _lines(None)[-len(ROWS) :]

    assert [line.split()[0] for line in body] == ["copy", "mingpt_sort"]
    assert body[0].endswith("1.0000 ± 0.0000  825 ± 66 (3 of 7)")


def test_a_count_goes_below_its_number_before_a_column_is_left_out():
    found = "\n".join(_lines(61, spare=("steps to solve",)))

    assert "825 ± 66\n" in found
    assert "(3 of 7)" in found


def test_a_spare_column_is_left_out_before_a_deviation_is_parted_from_its_mean():
    found = "\n".join(_lines(43, spare=("steps to solve",)))

    assert "solve" not in found
    assert "1.0000 ± 0.0000" in found
    assert not any("1.0000 ±" in line for line in _lines(43))


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("accuracy up to 2×", ["accuracy", "up to 2×"]),
        ("steps to solve", ["steps to", "solve"]),
        ("model.embed_dim", ["model.", "embed_dim"]),
        ("val/sequence accuracy", ["val/", "sequence", "accuracy"]),
        ("val/loss", ["val/loss"]),
        ("custom, builtin", ["custom, builtin"]),
        ("n", ["n"]),
    ],
)
def test_a_header_is_broken_only_where_its_lines_would_be_longer_than_numbers(name, lines):
    assert short_lines(name) == lines
