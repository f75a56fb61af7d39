"""The table that ends a multirun."""

import shlex
from pathlib import Path
from typing import Any

from mha_lab.commands.multirun_again import runs_below, words_of
from mha_lab.terminal import relative, show_table, tell
from mha_lab.training.run_folder import COMPLETE, read_summary, write_rows

_METRICS = {
    "test/sequence_accuracy": "sequence accuracy",
    "test/token_accuracy": "token accuracy",
    "steps": "steps",
    "wall_seconds": "seconds",
    "parameters": "parameters",
}


def show(folder: Path) -> int:
    """Print a table of a multirun's runs and write it as ``summary.csv``.

    Returns:
        The exit code: 0, or the worst of the runs that failed (2 where one was misasked).
    """
    rows = [_row(folder, run) for run in runs_below(folder)]
    if not rows:
        return 1
    varying = [
        key
        for key in dict.fromkeys(key for row in rows for key in row["overrides"])
        if len({row["overrides"].get(key) for row in rows}) > 1
    ]
    # attention=masked_decoder chooses a model too: say in which each ran, where they differ.
    models = {row["summary"]["model"] for row in rows if "model" in row["summary"]}
    ran_in = ["model"] if len(models) > 1 and "model" not in varying else []
    print()
    show_table(
        ("run", *varying, *ran_in, "status", *_METRICS.values()),
        [
            (
                row["run"],
                *(row["overrides"].get(key, "") for key in varying),
                *(row["summary"].get(key, "") for key in ran_in),
                row["summary"].get("status", "unfinished"),
                *(_number(key, row["summary"].get(key)) for key in _METRICS),
            )
            for row in rows
        ],
        numeric=len(_METRICS),
        # What a run's name says already goes first.
        spare=[*(key for key in varying if _is_named(key, rows)), "parameters", "token accuracy"],
    )
    if ran_in:
        tell(
            "not all of these ran in the same model, so a difference may be the model's: "
            "choose one with model= for all"
        )
    write_rows(
        folder / "summary.csv",
        [
            {
                "run": row["run"],
                **{k: row["overrides"].get(k, "") for k in varying},
                **row["summary"],
            }
            for row in rows
        ],
    )
    print(f"\ncompare them with:\n  python -m mha_lab report {shlex.quote(relative(folder))}")
    print(folder)
    return max(_code(row["summary"]) for row in rows)


def _row(folder: Path, run: Path) -> dict[str, Any]:
    pairs = dict(word.split("=", 1) for word in words_of(run) if "=" in word)
    name = run.relative_to(folder).as_posix()
    return {"run": name, "overrides": pairs, "summary": read_summary(run)}


def _is_named(key: str, rows: list[dict[str, Any]]) -> bool:
    """Whether the name of each run tells its value of a key."""
    return all(row["overrides"].get(key, "") in row["run"] for row in rows)


def _number(key: str, value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if key.startswith("test/") else f"{value:.1f}"
    return "" if value is None else f"{value:,}"


def _code(summary: dict[str, Any]) -> int:
    if summary.get("status") in COMPLETE:
        return 0
    return int(summary.get("exit_code", 1))
