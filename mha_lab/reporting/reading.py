"""A run as its folder tells it, whatever became of it. 200 of them take about a second."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mha_lab.config import CONFIG_FILE
from mha_lab.reporting.damage import CHOICES, UnreadableError, is_number
from mha_lab.reporting.evaluated import read_evaluated
from mha_lab.reporting.run_files import (
    SUMMARY,
    Curve,
    read_curves,
    read_lengths,
    read_overrides,
    read_summary,
    read_values,
)
from mha_lab.training.run_folder import COMPLETE

UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        folder: where it lies.
        status: ``solved``, ``finished``, ``interrupted``, ``failed``, ``unfinished``,
            ``unreadable``, or whatever else its summary says.
        reason: why its numbers do not count; empty for a complete one.
        values: its config, flat: a choice by its group (``attention``), a value by its dotted key
            (``optimizer.lr``). Empty where nothing is known of it.
        summary: its ``summary.json``.
        curves: steps and values of each validation metric.
        lengths: the share of test sequences wholly right, by length; also of longer ones than in
            training, where the run was evaluated on them.
        unused: choices that its config names and its model does not use.
    """

    folder: Path
    status: str
    reason: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    curves: dict[str, Curve] = field(default_factory=dict)
    lengths: dict[int, float] = field(default_factory=dict)
    unused: frozenset[str] = frozenset()

    @property
    def is_complete(self) -> bool:
        """Whether it was trained to its end and tested, so that its numbers count."""
        return self.status in COMPLETE

    @property
    def seed(self) -> Any:
        """Its seed; None where that is unknown."""
        return self.values.get("seed")

    @property
    def trained(self) -> tuple[int, int] | None:
        """The shortest and the longest source in its training; None where that is unknown."""
        low, high = (self.values.get(f"task.{end}_length") for end in ("min", "max"))
        return (low, high) if isinstance(low, int) and isinstance(high, int) else None

    def accuracy_up_to(self, multiple: int) -> float | None:
        """The mean accuracy over lengths up to a multiple of the longest in training.

        Those up to the multiple before it are left out: of 2, it is the lengths beyond training.
        """
        if self.trained is None:
            return None
        low, high = (self.trained[1] * times for times in (multiple - 1, multiple))
        found = [share for length, share in self.lengths.items() if low < length <= high]
        return math.fsum(found) / len(found) if found else None

    def text(self, key: str) -> str:
        """A value of its config as people write it; a dash where it has no such key."""
        value = self.values.get(key, "–")
        if value is None or isinstance(value, bool):
            return {None: "null", True: "true", False: "false"}[value]
        return str(value)

    def number(self, key: str) -> float | None:
        """A number of its summary; None where there is none."""
        value = self.summary.get(key)
        return float(value) if is_number(value) else None


def read_runs(folders: list[Path]) -> list[Run]:
    """Read runs; a damaged one comes back as ``unreadable``, with the reason."""
    return _effective_choices([read_run(folder) for folder in folders])


def read_run(folder: Path) -> Run:
    """Read one run's folder, also of a run that is unfinished, failed or damaged."""
    run = Run(folder, UNREADABLE)
    try:
        # One after the other: of a run with a damaged summary the config is still known.
        run = replace(run, values=read_values(folder))
        run = replace(run, summary=read_summary(folder))
        run = replace(run, values=run.values or read_overrides(run.summary))
        run = replace(run, curves=read_curves(folder), lengths=read_lengths(folder))
        run = replace(run, lengths=run.lengths | read_evaluated(folder))
    except UnreadableError as error:
        return replace(run, reason=str(error))
    stated = {choice: run.summary.get(choice) for choice in CHOICES}
    unused = {
        choice for choice, value in stated.items() if value == "none" != run.values.get(choice)
    }
    status = str(run.summary.get("status", "unfinished"))
    return replace(
        run,
        status=status,
        values=run.values | {key: value for key, value in stated.items() if value is not None},
        reason=_reason(run, status),
        unused=frozenset(unused),
    )


def _reason(run: Run, status: str) -> str:
    if status in COMPLETE:
        return ""
    if run.summary.get("reason"):
        return " ".join(str(run.summary["reason"]).split())
    if status == "interrupted":
        return f"stopped by hand at step {run.summary.get('steps', '?')}, before its test"
    if status != "unfinished":
        return "its summary gives no reason"
    if not (run.folder / CONFIG_FILE).is_file():
        return "stopped before its training began"
    last = max((int(steps[-1]) for steps, _ in run.curves.values()), default=None)
    reached = "no validation logged" if last is None else f"last validation at step {last}"
    return f"no {SUMMARY}: still running, or ended without one ({reached})"


def _effective_choices(runs: list[Run]) -> list[Run]:
    """Let a run without a summary say of its choices what summaries of the same model say.

    The config of a recurrent model still names an attention; only a summary says "none".
    """
    unused: dict[Any, frozenset[str]] = {}
    for run in runs:
        model = run.values.get("model")
        unused[model] = unused.get(model, frozenset()) | run.unused
    return [_without(run, unused[run.values.get("model")]) for run in runs]


def _without(run: Run, groups: frozenset[str]) -> Run:
    kept = {key: value for key, value in run.values.items() if key.split(".")[0] not in groups}
    return replace(run, values=kept | dict.fromkeys(groups, "none"))
