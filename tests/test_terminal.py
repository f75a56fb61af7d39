"""Tables in the terminal, narrow or none."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from mha_lab.terminal import relative, show_table, tracked, wrapped, wrapped_help

EXPECTED = """\
outputs/multirun/a-name-longer-than-the-table
                     val/
     model.          sequence           bare
run  embed_dim       accuracy  loop, steps/s
────────────────────────────────────────────
0    16              0.9985             71.1
11   interval(8,64)  1                101.25"""


@pytest.mark.parametrize("width", ["20", "80", "300"])
def test_words_stay_whole(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    show_table(
        ("run", "model.embed_dim", "val/sequence accuracy", "bare loop, steps/s"),
        [("0", "16", "0.9985", "71.1"), ("11", "interval(8,64)", "1", "101.25")],
        title="outputs/multirun/a-name-longer-than-the-table",
        numeric=1,
    )
    shown = capsys.readouterr().out
    assert "\n".join(line.rstrip() for line in shown.splitlines()) == EXPECTED


def test_a_path_below_the_working_folder_is_shown_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert relative(tmp_path / "outputs" / "run") == "outputs/run"
    assert relative(Path("outputs/run")) == "outputs/run"
    assert relative(tmp_path.parent / "other") == str(tmp_path.parent / "other")


@pytest.mark.parametrize(("width", "columns"), [(30, "run steps"), (16, "run"), (2, "run")])
def test_a_narrow_terminal_spares_columns(width, columns, monkeypatch):
    out = io.StringIO()

    def terminal(**how: int) -> Console:
        return Console(file=out, force_terminal=True, color_system=None, **{"width": width, **how})

    monkeypatch.setattr("rich.console.Console", terminal)
    rows = [("0_custom_seed0", "custom", "10"), ("1_builtin_seed0", "builtin", "20")]
    show_table(("run", "attention", "steps"), rows, numeric=1, spare=("attention", "steps"))
    assert out.getvalue().split("\n")[0].split() == columns.split()
    assert "1_builtin_seed0" in out.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_words_of_a_sentence_stay_whole_in_a_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "24")
    text = "mha_lab: choose outputs/a-long-folder/of-a-run or another folder"
    assert wrapped(text, Terminal(), indent=2).splitlines() == [
        "mha_lab: choose",
        "  outputs/a-long-folder/of-a-run",
        "  or another folder",
    ]
    assert wrapped(text, io.StringIO()) == text


def test_a_help_text_goes_on_below_where_a_description_begins(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "52")
    text = (
        "Usage:\n  bench loop   the harness against\n               a bare loop of our own\n\n"
        "One sentence that goes on\nto the end of the line,\nand ends here."
    )
    assert wrapped_help(text, Terminal()).splitlines() == [
        "Usage:",
        "  bench loop   the harness against a bare loop of",
        "               our own",
        "",
        "One sentence that goes on to the end of the line,",
        "and ends here.",
    ]
    assert wrapped_help(text, io.StringIO()) == text


def test_what_is_told_stands_below_its_word_where_beside_it_is_no_room(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("COLUMNS", "47")
    text = (
        "Usage:\n"
        "  bench loop                     the harness\n"
        "  bench loop repeats=3           it, shorter\n"
        "  bench loop repeats=11 minutes=2\n"
        "                                 it, for long"
    )
    assert wrapped_help(text, Terminal()).splitlines() == [
        "Usage:",
        "  bench loop                     the harness",
        "  bench loop repeats=3           it, shorter",
        "  bench loop repeats=11 minutes=2",
        "                                 it, for long",
    ]
    monkeypatch.setenv("COLUMNS", "40")
    assert wrapped_help(text, Terminal()).splitlines() == [
        "Usage:",
        "  bench loop",
        "      the harness",
        "  bench loop repeats=3",
        "      it, shorter",
        "  bench loop repeats=11 minutes=2",
        "      it, for long",
    ]


def test_a_command_in_backticks_is_not_broken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "27")
    assert wrapped("Say `mha_lab list attention` to see them.", Terminal()).splitlines() == [
        "Say",
        "`mha_lab list attention` to",
        "see them.",
    ]


def test_items_with_a_bar_are_all_there_and_print_nothing_where_it_is_piped(
    capsys: pytest.CaptureFixture[str],
):
    assert list(tracked([3, 5, 7], "testing")) == [3, 5, 7]
    assert capsys.readouterr() == ("", "")
