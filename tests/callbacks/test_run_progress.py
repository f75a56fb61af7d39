"""The bar of a run: what it shows in a terminal, and that it shows nothing elsewhere."""

import io

import pytest
import pytorch_lightning as pl
import torch
from rich.console import Console
from torch import nn

from mha_lab.callbacks import run_progress
from mha_lab.callbacks.run_progress import RunProgress, bars
from mha_lab.callbacks.stop_when_solved import StopWhenSolved
from mha_lab.terminal import clock


class Counting(pl.LightningModule):
    """Logs an accuracy that grows by a tenth at each validation."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.validations = 0

    def training_step(self, batch: torch.Tensor, _: int) -> torch.Tensor:
        loss = self.layer(batch).square().mean()
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch: torch.Tensor, _: int) -> None:
        self.validations += 1
        self.log("val/sequence_accuracy", self.validations / 10)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Silent(pl.LightningModule):
    """Tests nothing."""

    def test_step(self, batch: torch.Tensor, batch_idx: int) -> None:
        pass


def fit(
    *,
    threshold: float,
    is_terminal: bool,
    monkeypatch: pytest.MonkeyPatch,
    out: io.StringIO,
    fails: bool = False,
) -> str:
    monkeypatch.setattr(
        run_progress,
        "Console",
        lambda: Console(file=out, force_terminal=is_terminal, color_system=None, width=99),
    )
    loader = torch.utils.data.DataLoader(torch.randn(53, 3))
    trainer = pl.Trainer(
        accelerator="cpu", max_steps=41, val_check_interval=7, limit_val_batches=1, logger=False,
        check_val_every_n_epoch=None, num_sanity_val_steps=0, enable_checkpointing=False,
        enable_model_summary=False, callbacks=[RunProgress(5), StopWhenSolved(threshold)],
    )  # fmt: skip
    module = Counting()
    if fails:
        monkeypatch.setattr(module, "validation_step", lambda *_: 1 / 0)
    trainer.fit(module, loader, loader)
    return out.getvalue()


def test_a_solved_run_ends_with_a_full_bar_that_says_so(monkeypatch: pytest.MonkeyPatch):
    shown = fit(threshold=0.2, is_terminal=True, monkeypatch=monkeypatch, out=io.StringIO())
    last = [line for line in shown.splitlines() if "accuracy" in line][-1]
    assert "solved" in last
    assert "14/14" in last
    assert "accuracy 0.2000" in last


def test_a_run_that_is_not_solved_ends_at_its_last_step(monkeypatch: pytest.MonkeyPatch):
    shown = fit(threshold=1.0, is_terminal=True, monkeypatch=monkeypatch, out=io.StringIO())
    last = [line for line in shown.splitlines() if "accuracy" in line][-1]
    assert "solved" not in last
    assert "41/41" in last


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0:00"), (59.6, "1:00"), (754, "12:34"), (3723, "1:02:03")]
)
def test_a_time_is_read_as_on_a_clock(seconds: float, said: str):
    assert clock(seconds) == said


def test_a_bar_of_a_run_that_ended_tells_of_no_time_left():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=99)
    times = iter(range(99))
    bar = bars(console)
    bar.get_time = lambda: float(next(times))
    task = bar.add_task("training", total=10)
    for step in range(5):
        bar.update(task, completed=step)
    console.print(bar)
    assert " left" in out.getvalue()
    bar.stop_task(task)
    out.truncate(0)
    console.print(bar)
    assert "4/10" in out.getvalue()
    assert " left" not in out.getvalue()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_test_shows_how_far_it_is_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
):
    out = io.StringIO()
    monkeypatch.setattr(
        run_progress,
        "Console",
        lambda: Console(file=out, force_terminal=is_terminal, color_system=None, width=99),
    )
    trainer = pl.Trainer(accelerator="cpu", logger=False, enable_model_summary=False,
                         enable_checkpointing=False, callbacks=[RunProgress(5)])  # fmt: skip
    loader = torch.utils.data.DataLoader(torch.randn(11, 3))
    trainer.test(Silent(), loader, verbose=False)
    assert ("testing" in out.getvalue()) == ("/11" in out.getvalue()) == is_terminal
    if is_terminal:
        assert out.getvalue().endswith("\x1b[2K")  # the line is erased, and the cursor on it


@pytest.mark.parametrize(("width", "has_bar"), [(40, False), (80, True)])
def test_a_narrow_terminal_shows_numbers_and_no_bar(width: int, has_bar: bool):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=width)
    bar = bars(console)
    bar.add_task("training", total=40, completed=20, text=" · accuracy 0.0500 · loss 2.5")
    console.print(bar)
    assert "training" in out.getvalue()
    assert "20/40 · accuracy" in out.getvalue()
    assert ("━" in out.getvalue()) == has_bar


def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch):
    assert fit(threshold=0.2, is_terminal=False, monkeypatch=monkeypatch, out=io.StringIO()) == ""


def test_a_run_that_fails_gives_the_cursor_back(monkeypatch: pytest.MonkeyPatch):
    out = io.StringIO()
    with pytest.raises(ZeroDivisionError):
        fit(threshold=0.2, is_terminal=True, monkeypatch=monkeypatch, out=out, fails=True)
    shown = out.getvalue()
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l"), "the cursor is shown last"


def test_a_refresh_rate_below_one_is_refused():
    with pytest.raises(ValueError, match="refresh_rate must be at least 1, got 0"):
        RunProgress(0)
