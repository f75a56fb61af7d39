"""The figures of a report: every run of each group, accuracy by length, learning curves."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from mha_lab.reporting import drawing
from mha_lab.reporting.document import Picture
from mha_lab.reporting.grouping import Group
from mha_lab.reporting.measures import Measure
from mha_lab.reporting.statistics import MeanCurve, Stat, by_length, mean_curve

MOST_TOGETHER = len(drawing.SERIES)  # with more lines than colours, each group has its own panel
_WIDTH, _HEIGHT, _INCHES_PER_LETTER = 3.1, 3.1, 0.078
_PANEL_WIDTH, _PANEL_HEIGHT, _MOST_COLUMNS = 2.2, 1.6, 5

T = TypeVar("T")
Draw = Callable[[Axes, T, str], float]
"""Draws one line in a colour and returns the height of its right end."""


def every_run(groups: Sequence[Group], measure: Measure, name: str) -> Picture:
    """Each run as a dot, each group's mean ± standard deviation as a bar."""
    figure = Figure(
        figsize=(_width([group.label for group in groups]), 0.9 + 0.32 * len(groups)),
        layout="constrained",
    )
    axes = figure.subplots()
    for row, group in enumerate(groups):
        values = [value for run in group.complete if (value := measure.of(run)) is not None]
        colour = drawing.SERIES[row if len(groups) <= MOST_TOGETHER else 0]
        axes.plot(values, [row - 0.12] * len(values), "o", color=colour, ms=5.5, alpha=0.6, mew=0)
        stat = measure.stat(group.complete)
        if stat is None:
            axes.text(0.01, row, "none", transform=axes.get_yaxis_transform(), va="center")
        else:
            bar: Any = {"fmt": "|", "ms": 7, "mew": 1.6, "lw": 1.2}
            axes.errorbar(stat.mean, row + 0.2, xerr=stat.sd, color=drawing.INK, **bar)
    axes.set_yticks(range(len(groups)), [group.label for group in groups])
    axes.tick_params(axis="y", labelcolor=drawing.INK)
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(measure.name)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    return drawing.picture(
        figure,
        name,
        caption=f"{measure.name.capitalize()}: every run (dots), and each group's mean ± one "
        "standard deviation (bars).",
        alt=f"{measure.name} of {len(groups)} groups, a dot a run",
    )


def accuracy_by_length(groups: Sequence[Group]) -> Picture | None:
    """The share of sequences wholly right against their length; None where no run has it."""
    lines = [(group.label, stats) for group in groups if (stats := by_length(group.complete))]

    def draw(axes: Axes, stats: dict[int, Stat], colour: str) -> float:
        lengths = np.array(list(stats), dtype=float)
        mean = np.array([stat.mean for stat in stats.values()])
        sd = np.array([stat.sd or 0.0 for stat in stats.values()])
        axes.plot(lengths, mean, "-o", color=colour, lw=1.8, ms=3.5, mew=0)
        _band(axes, lengths, mean, sd, colour, 0.0, 1.0)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        return float(mean[-1])

    if not lines:
        return None
    figure = _lines(lines, draw, "length of the sequence", "sequence accuracy")
    return drawing.picture(
        figure,
        "accuracy_by_length",
        caption="Share of test sequences wholly right, by length; band: ± one standard deviation "
        "over the runs.",
        alt="sequence accuracy against length, a line a group",
    )


def learning_curves(groups: Sequence[Group], key: str, name: str) -> Picture | None:
    """The mean of a validation metric against the step; None where no run logged it."""
    curves = [
        (group.label, curve)
        for group in groups
        if (curve := mean_curve([r.curves[key] for r in group.complete if key in r.curves]))
    ]
    metric = f"validation {key.removeprefix('val/').replace('_', ' ')}"
    is_share, is_log = "accuracy" in key, "loss" in key
    positive = [c.mean[c.mean > 0].min() for _, c in curves if (c.mean > 0).any()]
    floor = float(min(positive, default=1.0)) / 2 if is_log else -math.inf
    low, high = (0.0, 1.0) if is_share else (floor, math.inf)

    def draw(axes: Axes, curve: MeanCurve, colour: str) -> float:
        if is_share:
            axes.set_ylim(-0.03, 1.03)
        elif is_log:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("")
        whole, held = curve.steps <= curve.first_end, curve.steps >= curve.first_end
        axes.plot(curve.steps[whole], curve.mean[whole], color=colour, lw=1.8)
        axes.plot(curve.steps[held], curve.mean[held], color=colour, lw=1.5, ls=(0, (2, 1.2)))
        ends = np.interp(curve.ends, curve.steps, curve.mean)
        axes.plot(curve.ends, ends, "o", color=colour, ms=3.5, mew=0)
        if curve.sd is not None:
            _band(axes, curve.steps, curve.mean, curve.sd, colour, low, high)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        return float(curve.mean[-1])

    if not curves:
        return None
    figure = _lines(curves, draw, "training step", metric)
    return drawing.picture(
        figure,
        name,
        caption=f"{metric.capitalize()}: mean over the runs, band ± one standard deviation"
        f"{', cut at the axis' if is_share or is_log else ''}. Between its validations a run is "
        "interpolated. A dot marks where a run ended; from a group's first dot on its line is "
        "dashed, for there the runs that stopped keep their last value.",
        alt=f"{metric} against the training step, a line a group",
    )


def _lines(lines: list[tuple[str, T]], draw: Draw[T], x_label: str, y_label: str) -> Figure:
    """All lines in one chart with their names at their ends, or, of many, each in its own panel."""
    plot = partial(_panels if len(lines) > MOST_TOGETHER else _together, lines, draw)
    return plot(x_label, y_label)


def _together(lines: list[tuple[str, T]], draw: Draw[T], x_label: str, y_label: str) -> Figure:
    figure = Figure(figsize=(_width([label for label, _ in lines]), _HEIGHT), layout="constrained")
    axes = figure.subplots()
    ends = []
    for (label, line), colour in zip(lines, drawing.SERIES, strict=False):
        ends.append((draw(axes, line, colour), label, colour))
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.margins(x=0.01)
    drawing.name_lines(axes, ends)
    return figure


def _panels(lines: list[tuple[str, T]], draw: Draw[T], x_label: str, y_label: str) -> Figure:
    columns = min(_MOST_COLUMNS, len(lines))
    rows = math.ceil(len(lines) / columns)
    size = (_PANEL_WIDTH * columns, 0.3 + _PANEL_HEIGHT * rows)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, (label, line) in zip(grid, lines, strict=False):
        draw(axes, line, drawing.SERIES[0])
        axes.set_title(label, fontsize=9.5)
    for axes in grid[len(lines) :]:
        axes.set_axis_off()
    figure.supxlabel(x_label, fontsize=10.5, color=drawing.MUTED)
    figure.supylabel(y_label, fontsize=10.5, color=drawing.MUTED)
    return figure


def _width(labels: Sequence[str]) -> float:
    """How wide a chart with these names beside it is, in inches."""
    return _WIDTH + _INCHES_PER_LETTER * max(map(len, labels), default=0)


def _band(
    axes: Axes,
    x: NDArray[np.float64],
    mean: NDArray[np.float64],
    sd: NDArray[np.float64],
    colour: str,
    low: float,
    high: float,
) -> None:
    bottom, top = np.clip(mean - sd, low, high), np.clip(mean + sd, low, high)
    axes.fill_between(x, bottom, top, color=colour, alpha=0.16, lw=0)
