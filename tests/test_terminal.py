"""Tables in the terminal, narrow or none."""

from pathlib import Path

import pytest

from mha_lab.terminal import relative, show_table

EXPECTED = """\
outputs/multirun/a-name-longer-than-the-table
     model.          val/
     embed_          sequence_           bare
run  dim             accuracy   loop, steps/s
─────────────────────────────────────────────
0    16              0.9985              71.1
11   interval(8,64)  1                 101.25"""


@pytest.mark.parametrize("width", ["20", "80", "300"])
def test_words_stay_whole(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    show_table(
        ("run", "model.embed_dim", "val/sequence_accuracy", "bare loop, steps/s"),
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
