"""Figures of a report: every run of each group, and learning curves."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mha_lab.reporting import charts, drawing
from mha_lab.reporting.document import Picture
from mha_lab.reporting.grouping import Group
from mha_lab.reporting.measures import Measure
from mha_lab.reporting.statistics import MeanCurve, mean_curve

_STRIP_WIDTH, _MOST_ROOMY = 2.7, 12


def every_run(groups: Sequence[Group], measure: Measure, name: str) -> Picture:
    """Each run as a dot, each group's mean ± standard deviation as a bar."""
    names = 0.15 + charts.LETTER * max(len(group.label) for group in groups)
    height = (0.32 if len(groups) <= _MOST_ROOMY else 0.24) * len(groups)
    figure = Figure(figsize=(names + _STRIP_WIDTH + 0.2, height + charts.BELOW + 0.1))
    axes = drawing.place(figure, names, charts.BELOW, _STRIP_WIDTH, height)
    is_share = measure.style == "share"
    for row, (group, shade) in enumerate(zip(groups, charts.shades(groups), strict=True)):
        values = [value for run in group.complete if (value := measure.of(run)) is not None]
        dots: Any = {"color": shade.colour, "ms": 5.5, "alpha": 0.6, "mew": 0}
        axes.plot(values, [row - 0.12] * len(values), "o", **dots)
        stat = measure.stat(group.complete)
        if stat is None:
            at: Any = {"transform": axes.get_yaxis_transform(), "va": "center"}
            axes.text(0.01, row, "none", color=drawing.MUTED, **at)
        else:
            bar: Any = {"color": drawing.INK, "fmt": "|", "ms": 7, "mew": 1.6, "lw": 1.2}
            sd = stat.sd or 0.0
            below, above = (min(sd, stat.mean), min(sd, 1 - stat.mean)) if is_share else (sd, sd)
            axes.errorbar(stat.mean, row + 0.2, xerr=[[below], [above]], **bar)
    axes.set_yticks(range(len(groups)), [group.label for group in groups])
    axes.tick_params(axis="y", labelcolor=drawing.INK, labelsize=10.5)
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(measure.name)
    axes.ticklabel_format(axis="x", useOffset=False, style="plain")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    if is_share:
        limits, ticks = drawing.share_axis(*axes.dataLim.intervalx)
        axes.set_xlim(limits)
        axes.set_xticks(ticks)
    elif measure.style != "small":
        axes.set_xlim(left=0)
    return drawing.picture(
        figure,
        name,
        caption=f"{measure.name.capitalize()}: every run (dots), and each group's mean ± one "
        f"standard deviation (bars{', cut at 0 and 1' if is_share else ''}).",
        alt=f"{measure.name} of {len(groups)} groups, a dot a run",
    )


def learning_curves(groups: Sequence[Group], key: str, name: str) -> Picture | None:
    """The mean of a validation metric against the step; None where no run logged it."""
    curves = [
        (shade, curve)
        for shade, group in zip(charts.shades(groups), groups, strict=True)
        if (curve := mean_curve([r.curves[key] for r in group.complete if key in r.curves]))
    ]
    if not curves:
        return None
    metric = f"validation {key.removeprefix('val/').replace('_', ' ')}"
    is_share = "accuracy" in key
    positive = [curve.mean[curve.mean > 0] for _, curve in curves]
    lowest = min((mean.min() for mean in positive if mean.size), default=1.0)
    highest = max((mean.max() for mean in positive if mean.size), default=1.0)
    # A log scale of less than a decade would have no numbers.
    is_log = "loss" in key and highest >= 10 * lowest
    floor = float(lowest) / 2 if is_log else -math.inf
    low, high = (0.0, 1.0) if is_share else (floor, math.inf)

    def draw(axes: Axes, curve: MeanCurve, colour: str) -> float:
        if is_share:
            axes.set_ylim(-0.03, 1.03)
        elif is_log:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(_short)
            axes.yaxis.set_minor_formatter("")
        whole, held = curve.steps <= curve.first_end, curve.steps >= curve.first_end
        axes.plot(curve.steps[whole], curve.mean[whole], color=colour, lw=1.8)
        axes.plot(curve.steps[held], curve.mean[held], color=colour, lw=1.5, ls=(0, (2, 1.2)))
        ends = np.interp(curve.ends, curve.steps, curve.mean)
        axes.plot(curve.ends, ends, "o", color=colour, ms=3.5, mew=0)
        if curve.sd is not None:
            drawing.band(axes, curve.steps, curve.mean, curve.sd, colour, low, high)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        return float(curve.mean[-1])

    figure, rest = charts.draw_lines(curves, draw, "training step", metric)
    return drawing.picture(
        figure,
        name,
        caption=f"{metric.capitalize()}: mean over the runs, band ± one standard deviation"
        f"{', cut at the axis' if is_share or is_log else ''}. Between its validations a run is "
        "interpolated. A dot marks where a run ended; from a group's first dot on its line is "
        f"dashed, for there the runs that stopped keep their last value.{rest}",
        alt=f"{metric} against the training step, a line a group",
    )


def _short(number: float, _: float) -> str:
    """A power of ten in few letters: 0.01, 1e-4."""
    return f"{number:g}" if number >= 1e-3 else f"{number:.0e}".replace("e-0", "e-")
