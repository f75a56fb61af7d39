"""The numbers of a study as a table: a row an arm, mean ± standard deviation over its seeds."""

from collections.abc import Sequence
from typing import Any

from mha_lab.reporting.document import Table
from mha_lab.reporting.statistics import describe
from mha_lab.studies.claims import by_seed, written
from mha_lab.studies.measuring import Row
from mha_lab.studies.study import Study

Column = tuple[str, dict[str, str]]
"""A measure, and where: the columns of text that its rows have."""


def columns(study: Study, rows: Sequence[Row]) -> list[Column]:
    """What is shown: each measure, wherever it was measured."""
    fixed = {"seed", *study.axes}
    found: list[Column] = []
    for measure in study.spec.show:
        for row in rows:
            where = {k: v for k, v in row.items() if isinstance(v, str) and k not in fixed}
            if measure in row and (measure, where) not in found:
                found.append((measure, where))
    return found


def table(study: Study, rows: Sequence[Row]) -> Table:
    """The table that people read."""
    shown = columns(study, rows)
    cells = []
    for arm in study.arms:
        values = [
            list(by_seed(rows, m, exactly(study, arm) | where).values()) for m, where in shown
        ]
        numbers = [written(v, m) for v, (m, _) in zip(values, shown, strict=True)]
        cells.append([*(arm.get(axis, "–") for axis in study.axes), *numbers])
    caption = f"Mean ± standard deviation over {study.seeds} seeds."
    return Table([*study.axes, *map(_heading, shown)], cells, caption, numeric=len(shown))


def mean_rows(study: Study, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The same unrounded: a row an arm and measure."""
    found = []
    for arm in study.arms:
        for measure, where in columns(study, rows):
            stat = describe(by_seed(rows, measure, exactly(study, arm) | where).values())
            if stat is not None:
                place: dict[str, Any] = {axis: arm.get(axis, "") for axis in study.axes} | where
                numbers = {"n": stat.n, "mean": stat.mean, "sd": "" if stat.sd is None else stat.sd}
                found.append(place | {"measure": measure} | numbers)
    return found


def exactly(study: Study, arm: dict[str, str]) -> dict[str, str]:
    """A selector of one arm's rows: an axis that it has none of is empty there."""
    return {axis: arm.get(axis, "") for axis in study.axes}


def _heading(column: Column) -> str:
    measure, where = column
    name = measure.removeprefix("test/").replace("_", " ")
    return " ".join([name, *where.values()])
