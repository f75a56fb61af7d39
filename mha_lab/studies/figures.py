"""The figures that ``study.yaml`` can ask for: lines, points, a heatmap."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mha_lab.reporting.drawing import (
    GRID,
    INK,
    MUTED,
    PAPER,
    SERIES,
    band,
    ink_on,
    shades,
    style,
    without_alpha,
)
from mha_lab.reporting.statistics import describe
from mha_lab.studies.claims import by_seed, select
from mha_lab.studies.measuring import Row, load
from mha_lab.studies.spec import FigureSpec
from mha_lab.studies.study import Study

_DPI = 130


def picture(study: Study, rows: Sequence[Row]) -> bytes | None:
    """The study's figure as PNG: by its ``draw.py``, or else as it says; None for none.

    ``draw.py`` defines ``draw(study, rows)``, which returns a matplotlib Figure; the runs lie in
    ``study.runs / job.name`` for each ``job`` of ``study.jobs``.
    """
    code = study.folder / "draw.py"
    with style():
        if code.is_file():
            figure: Figure = load(code).draw(study, list(rows))
        elif study.figure is not None:
            figure = draw(study, study.figure, rows)
        else:
            return None
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=_DPI, bbox_inches="tight")
    return without_alpha(png).getvalue()


def attached(study: Study, rows: Sequence[Row]) -> dict[str, bytes]:
    """Further files of the report by name: what ``attach(study, rows)`` of ``draw.py`` makes."""
    code = study.folder / "draw.py"
    if not code.is_file():
        return {}
    module = load(code)
    return dict(module.attach(study, list(rows))) if hasattr(module, "attach") else {}


def draw(study: Study, spec: FigureSpec, rows: Sequence[Row]) -> Figure:
    """Draw what a study asks for."""
    chosen = [row for row in select(rows, spec.at) if spec.measure in row]
    panels = _values(study, spec.panels, chosen) if spec.panels else [""]
    width = {"lines": 3.6, "points": 3.2, "heatmap": 4.6}[spec.kind]
    height = 3.2
    if spec.kind == "heatmap" and spec.colour:
        height = 1.4 + 0.36 * len(_values(study, spec.colour, chosen))
    figure = Figure(figsize=(width * len(panels) + 1.2, height), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False, sharey=spec.kind != "heatmap")[0]
    drawing = {"lines": _lines, "points": _points, "heatmap": _heatmap}[spec.kind]
    for axes, panel in zip(all_axes, panels, strict=True):
        own = select(chosen, {spec.panels: panel}) if spec.panels else chosen
        drawing(study, spec, own, axes)
        where = f"{_name(spec.panels)} {panel}" if spec.panels else ""
        # No axis of a heatmap says what its numbers are.
        told = [where, _name(spec.measure)] if spec.kind == "heatmap" else [where]
        axes.set_title(": ".join(filter(None, told)))
        if spec.log:
            axes.set_yscale("log")
    if spec.kind != "heatmap":
        all_axes[0].set_ylabel(_name(spec.measure))
    if spec.kind == "lines" and spec.colour:
        figure.legend(*_handles(all_axes), loc="outside right upper", frameon=False)
    return figure


def _handles(all_axes: Sequence[Axes]) -> tuple[list[Any], list[str]]:
    """Each line once, whichever panel it is in."""
    found: dict[str, Any] = {}
    for axes in all_axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values()), list(found)


def _lines(study: Study, spec: FigureSpec, rows: Sequence[Row], axes: Axes) -> None:
    """Means over a column, each with its standard deviation as a band."""
    xs = _values(study, spec.x, rows)
    levels = _values(study, spec.colour, rows) if spec.colour else [""]
    known = _values(study, spec.colour, rows, everywhere=True) if spec.colour else [""]
    limits = (0.0, 1.0) if "accuracy" in spec.measure else ()
    for level in levels:
        own = {spec.colour: level} if spec.colour else {}
        stats = [describe(by_seed(rows, spec.measure, own | {spec.x: x}).values()) for x in xs]
        there = [i for i, stat in enumerate(stats) if stat is not None]
        mean = np.array([stat.mean for stat in stats if stat is not None])
        sd = np.array([stat.sd or 0.0 for stat in stats if stat is not None])
        number = known.index(level)
        colour = SERIES[number % len(SERIES)]
        dashes = "-" if number < len(SERIES) else "--"
        axes.plot(there, mean, dashes, color=colour, marker="o", ms=4, label=level)
        band(axes, there, mean, sd, colour, *limits)
    axes.set_xticks(range(len(xs)), xs)
    axes.set_xlabel(_name(spec.x))


def _points(study: Study, spec: FigureSpec, rows: Sequence[Row], axes: Axes) -> None:
    """Every seed, and the mean as a line."""
    levels = _values(study, spec.x, rows)
    for i, level in enumerate(levels):
        values = list(by_seed(rows, spec.measure, {spec.x: level}).values())
        spread = np.linspace(-0.12, 0.12, len(values)) if len(values) > 1 else [0.0]
        axes.plot(i + np.array(spread), values, "o", ms=5, color=SERIES[i % len(SERIES)], alpha=0.8)
        axes.plot([i - 0.25, i + 0.25], [np.mean(values)] * 2, color=INK, lw=1.4)
    axes.set_xticks(range(len(levels)), levels)
    axes.set_xlabel(_name(spec.x))
    axes.margins(x=0.15)


def _heatmap(study: Study, spec: FigureSpec, rows: Sequence[Row], axes: Axes) -> None:
    """Means as colours, with the number in each cell."""
    across = _values(study, spec.x, rows)
    down = _values(study, spec.colour, rows) if spec.colour else [""]
    means = np.full((len(down), len(across)), np.nan)
    for i, row in enumerate(down):
        for j, column in enumerate(across):
            where = {spec.x: column} | ({spec.colour: row} if spec.colour else {})
            values = list(by_seed(rows, spec.measure, where).values())
            if values:
                means[i, j] = np.mean(values)
    top = max(1.0, float(np.nanmax(means)))
    axes.imshow(means, vmin=0, vmax=top, cmap=shades(), aspect="auto")
    for (i, j), value in np.ndenumerate(means):
        if np.isnan(value):  # hatched, as in a report: not measured
            corner = (j - 0.5, i - 0.5)
            axes.add_patch(Rectangle(corner, 1, 1, fc=PAPER, ec=GRID, hatch="////", lw=0))
        else:
            ink = ink_on(float(value) / top)
            axes.text(j, i, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=9)
    is_long = sum(map(len, across)) > 30
    turned: Any = {"rotation": 30, "ha": "right"} if is_long else {}
    axes.set_xticks(range(len(across)), [*map(_name, across)], **turned)
    axes.set_yticks(range(len(down)), [*map(_name, down)])
    axes.tick_params(labelcolor=INK)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(_name(spec.x), color=MUTED)


def _values(
    study: Study, column: str, rows: Sequence[Row], *, everywhere: bool = False
) -> list[str]:
    """The values of a column: of an axis in the order of ``study.yaml``, else as they come."""
    declared = dict.fromkeys(level for grid in study.grids for level in grid.get(column, {}))
    there = dict.fromkeys(str(row[column]) for row in rows if row.get(column, "") != "")
    if declared:
        return [level for level in declared if everywhere or level in there]
    return list(there)


def _name(column: str) -> str:
    return column.removeprefix("test/").replace("_", " ")
