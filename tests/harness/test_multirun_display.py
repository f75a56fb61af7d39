"""The terminal of train -m: one bar of runs and one table, or a line a run where it is piped."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from small_runs import TINY

from mha_lab import cli
from mha_lab.callbacks import run_progress
from mha_lab.commands import multirun_display
from mha_lab.commands.multirun_display import count_runs
from mha_lab.config.words import parse_words

MANY = [
    "train", "-m", "attention=composed,builtin", "position=learned,rotary",
    *(word for word in TINY if "progress" not in word), "trainer.max_steps=5",
]  # fmt: skip


def test_a_line_a_run_and_one_table_where_there_is_no_terminal(lab, tmp_path: Path):
    code, out, err = lab(*MANY, f"hydra.sweep.dir={tmp_path}/runs")
    assert code == 2  # builtin lets rotary not in
    first, folder, *lines = (line for line in out.splitlines() if line.strip())
    varied = "attention=composed,builtin position=learned,rotary"
    assert first.startswith(f"4 runs · {varied} · model.embed_dim=16 ")
    assert folder == f"{tmp_path}/runs"
    assert [line.split(":")[0] for line in lines[:3]] == [
        "0_composed_learned", "1_composed_rotary", "2_builtin_learned",
    ]  # fmt: skip
    assert all(": finished · 5 steps · accuracy 0." in line for line in lines[:3])
    assert out.count("sequence") == 1
    assert "dashboard" not in out
    assert "HYDRA" not in out
    assert "\x1b" not in out
    assert sum("_rotary" in line or "_learned" in line for line in lines) == 3 + 4
    assert lines[-2].strip() == f"python -m mha_lab report {tmp_path}/runs"
    assert len(err.splitlines()) == 1
    assert lines[-1] == f"{tmp_path}/runs"
    assert not list(tmp_path.glob("runs/*/*.log")), "nothing was logged"


@pytest.mark.parametrize("width", [80, 120])
def test_one_bar_of_runs_in_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
):
    out = io.StringIO()

    def terminal() -> Console:
        return Console(file=out, force_terminal=True, color_system=None, width=width)

    for module in (run_progress, multirun_display):
        monkeypatch.setattr(module, "Console", terminal)
    assert cli.run([*MANY, f"hydra.sweep.dir={tmp_path}/runs"]) == 2
    shown = out.getvalue()
    frames = [line for line in shown.replace("\x1b", "\n").splitlines() if "runs" in line]
    assert any("attention=builtin position=rotary" in line for line in frames)
    assert "4/4 · 3 finished · 1 failed" in frames[-1]
    assert any("training" in line for line in shown.splitlines())
    assert all(len(line) <= width + 10 for line in frames)  # with what moves the cursor
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    printed = capsys.readouterr().out
    assert "finished · 5 steps" not in printed
    assert "test accuracy" not in printed


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (["seed=0,1,2", "task=copy,sort", "optimizer.lr=1e-3"], 6),
        (["seed=range(0,9,2)", "model=glob(*)"], None),
        (["seed=range(0,9,2)"], 5),
        (["seed=3"], 1),
        (["optimizer.lr=interval(1e-4,1e-2)", "seed=0,1"], None),
        (["seed=0,1", "hydra/sweeper=optuna"], None),
    ],
)
def test_runs_are_counted_before_they_begin(words: list[str], runs: int | None):
    assert count_runs(parse_words(words)) == runs
