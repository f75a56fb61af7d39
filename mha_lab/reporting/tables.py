"""The numbers of a report as rows for CSV files, unrounded."""

from typing import Any

from mha_lab.reporting.comparison import Comparison
from mha_lab.reporting.measures import SECONDS_TO_SOLVE, STEPS_TO_SOLVE, numeric_keys, of_summary
from mha_lab.reporting.statistics import Stat, by_length


def group_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """A row a group: how many runs, and n, mean and sd of every number of their summaries."""
    measures = {key: of_summary(key) for key in numeric_keys(comparison.runs)}
    measures |= {"steps_to_solve": STEPS_TO_SOLVE, "seconds_to_solve": SECONDS_TO_SOLVE}
    measures |= {one.name: one for one in comparison.beyond}
    rows = []
    for group in comparison.groups:
        row: dict[str, Any] = dict(zip(group.by, group.key, strict=True))
        row |= {
            "runs": len(group.runs),
            "complete": len(group.complete),
            "solved": sum(run.status == "solved" for run in group.runs),
        }
        for key, measure in measures.items():
            row |= _columns(key, measure.stat(group.complete))
        rows.append(row)
    return rows


def run_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """A row a run, complete or not: its folder, what it was, its summary."""
    rows = []
    for run in comparison.runs:
        row: dict[str, Any] = {"run": comparison.path(run)}
        row |= {key: run.text(key) for key in (*comparison.by, "seed")}
        row |= {"status": run.status, "reason": run.reason}
        rows.append(row | {k: v for k, v in run.summary.items() if k not in row})
    return rows


def length_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """A row a group and length."""
    return [
        {**dict(zip(group.by, group.key, strict=True)), "length": length}
        | _columns("sequence_accuracy", stat)
        for group in comparison.groups
        for length, stat in by_length(group.complete).items()
    ]


def _columns(key: str, stat: Stat | None) -> dict[str, Any]:
    return {
        f"{key} n": stat.n if stat else 0,
        f"{key} mean": stat.mean if stat else "",
        f"{key} sd": "" if stat is None or stat.sd is None else stat.sd,
    }
