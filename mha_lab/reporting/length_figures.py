"""Figures of accuracy at lengths: lines by length, and a map of tasks and variants."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from mha_lab.reporting import charts, drawing
from mha_lab.reporting.document import Picture
from mha_lab.reporting.grouping import Group
from mha_lab.reporting.measures import Measure
from mha_lab.reporting.statistics import Stat, by_length

_CELL_WIDTH, _CELL_HEIGHT, _HEAD = 0.5, 0.27, 0.34
_MOST_COLUMNS = 40


def accuracy_by_length(groups: Sequence[Group]) -> Picture | None:
    """The share of sequences wholly right against their length; None where no run has it."""
    both = zip(charts.shades(groups), map(by_length, (g.complete for g in groups)), strict=True)
    trained = [_trained(group) for group in groups]
    lines = [
        (shade, (stats, span)) for (shade, stats), span in zip(both, trained, strict=True) if stats
    ]
    if not lines:
        return None
    is_beyond = any(span and max(stats) > span[1] for _, (stats, span) in lines)
    # Panels share one axis: it must hold the lines of all, not of the one that is drawn last.
    limits, ticks = drawing.share_axis(*_range(stats for _, (stats, _) in lines))

    def draw(axes: Axes, line: tuple[dict[int, Stat], Any], colour: str) -> float:
        stats, span = line
        lengths = np.array(list(stats), dtype=float)
        mean = np.array([stat.mean for stat in stats.values()])
        sd = np.array([stat.sd or 0.0 for stat in stats.values()])
        axes.plot(lengths, mean, "-o", color=colour, lw=1.8, ms=3.5, mew=0)
        drawing.band(axes, lengths, mean, sd, colour, 0.0, 1.0)
        axes.set_ylim(limits)
        axes.set_yticks(ticks)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        if is_beyond and span:
            _shade(axes, *span)
        return float(mean[-1])

    figure, rest = charts.draw_lines(lines, draw, "length of the sequence", "sequence accuracy")
    told = " Shaded: the lengths of training." if is_beyond else ""
    return drawing.picture(
        figure,
        "accuracy_by_length",
        caption="Share of test sequences wholly right, by length; band: ± one standard deviation "
        f"over the runs.{told}{rest}",
        alt="sequence accuracy against length, a line a group",
    )


def _range(lines: Iterable[dict[int, Stat]]) -> tuple[float, float]:
    """The lowest and the highest share that lines and their bands reach."""
    stats = [stat for line in lines for stat in line.values()]
    return (
        max(0.0, min(stat.mean - (stat.sd or 0.0) for stat in stats)),
        min(1.0, max(stat.mean + (stat.sd or 0.0) for stat in stats)),
    )


def tasks_and_variants(groups: Sequence[Group], measures: Sequence[Measure]) -> Picture | None:
    """Accuracies as a map, a row a task and a column a variant; a panel for each measure.

    Args:
        groups: compared by task and by something else.
        measures: the first is of the lengths of training, the others of longer ones.

    Returns:
        The figure; None where there are not two tasks and two variants.
    """
    if not groups or "task" not in groups[0].by:
        return None
    at = groups[0].by.index("task")
    cells = {
        (g.key[at], " · ".join(w for i, w in enumerate(g.words) if w and i != at)): g
        for g in groups
    }
    tasks, variants = (list(dict.fromkeys(keys)) for keys in zip(*cells, strict=True))
    if len(tasks) < 2 or len(variants) < 2:
        return None
    shown = variants[:_MOST_COLUMNS]
    left = 0.2 + charts.LETTER * max(map(len, tasks))
    below = 0.2 + 0.85 * charts.LETTER * max(map(len, shown))  # in smaller letters
    width, height = _CELL_WIDTH * len(shown), _CELL_HEIGHT * len(tasks)
    step = width + 0.3
    figure = Figure(figsize=(left + step * len(measures), below + height + _HEAD + 0.1))
    for i, measure in enumerate(measures):
        table = [
            [_mean(measure, cells.get((task, variant))) for variant in shown] for task in tasks
        ]
        if i:
            _behind(figure, left + step * i - 0.12, width + 0.24)
        axes = drawing.place(figure, left + step * i, below, width, height)
        _fill(axes, np.array(table))
        axes.set_title(measure.name, fontsize=9.5)
        axes.set_xticks(range(len(shown)), shown, rotation=90, fontsize=9)
        axes.set_yticks(range(len(tasks)), tasks if i == 0 else [""] * len(tasks))
        axes.tick_params(labelcolor=drawing.INK)
    hidden = len(variants) - len(shown)
    left_out = f" {hidden} more variants are left out." if hidden else ""
    longer = " On shaded ground: lengths beyond training." if len(measures) > 1 else ""
    return drawing.picture(
        figure,
        "tasks_and_variants",
        caption="Mean accuracy over the complete runs of each task and variant; hatched where "
        f"there is none.{longer}{left_out}",
        alt="mean accuracy, a row a task, a column a variant",
    )


def _trained(group: Group) -> tuple[int, int] | None:
    """The lengths that all runs of a group were trained on; None where they differ."""
    spans = {run.trained for run in group.complete}
    return spans.pop() if len(spans) == 1 else None


def _shade(axes: Axes, low: int, high: int) -> None:
    if not any(patch.get_gid() == "trained" for patch in axes.patches):
        span = axes.axvspan(low - 0.5, high + 0.5, color=drawing.GRID, zorder=0, lw=0)
        span.set_gid("trained")


def _mean(measure: Measure, group: Group | None) -> float:
    stat = measure.stat(group.complete) if group else None
    return stat.mean if stat else float("nan")


def _behind(figure: Figure, left: float, width: float) -> None:
    """Shade the ground of a panel, from its title to its names."""
    whole, _ = figure.get_size_inches()
    figure.add_artist(
        Rectangle((left / whole, 0), width / whole, 1, color=drawing.GRID, zorder=-1, lw=0)
    )


def _fill(axes: Axes, table: "np.ndarray[Any, np.dtype[np.float64]]") -> None:
    axes.imshow(table, cmap=drawing.shades(), vmin=0, vmax=1, aspect="auto")
    axes.grid(visible=False)
    for row, column in np.ndindex(table.shape):
        share = table[row, column]
        if np.isnan(share):
            corner = (column - 0.5, row - 0.5)
            axes.add_patch(
                Rectangle(corner, 1, 1, fc=drawing.PAPER, ec=drawing.MUTED, hatch="////", lw=0)
            )
        else:
            ink = drawing.ink_on(float(share))
            at: Any = {"ha": "center", "va": "center", "fontsize": 8, "color": ink}
            axes.text(column, row, f"{share:.2f}", **at)
