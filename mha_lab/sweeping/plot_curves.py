"""Learning curves of all trials: the metric that the pruner watches, by training step."""

import csv
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.plot_parts import BEST, PRUNED, Colors, new_figure
from mha_lab.sweeping.results import Result, best
from mha_lab.sweeping.run_trial import run_folders
from mha_lab.training.run_folder import METRICS


def draw_curves(plan: Plan, results: Sequence[Result]) -> Figure:
    """Draw a curve a trial, of its first seed; pruned ones in grey, a cross where they end."""
    figure = new_figure(9, 4.8)
    axes = figure.subplots()
    colors, winner = Colors(plan, results), best(results)
    metric = plan.settings.prune_by
    labels: set[str] = set()
    for result in reversed(results):
        file = run_folders(plan, result.trial.number)[0] / METRICS
        steps, values = read_curve(file, metric)
        if not steps:
            continue  # not started, or run on another machine
        is_best = result is winner
        ended_early = result.state in ("pruned", "failed")
        label = f"best: trial {result.trial.number}" if is_best else ""
        axes.plot(
            steps,
            values,
            # Else one validation would not be seen.
            marker="o" if len(steps) == 1 and not ended_early else None,
            color=BEST if is_best else colors.of(result),
            linewidth=3 if is_best else 1.2,
            alpha=0.85,
            label=label or None,
        )
        if ended_early:
            label = "" if result.state in labels else result.state
            labels.add(result.state)
            marker = "x" if result.state == "pruned" else "v"
            axes.plot(steps[-1], values[-1], marker, color=PRUNED, label=label or None)
    axes.set(xlabel="training step", ylabel=metric)
    axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
    colors.bar(figure, axes)
    return figure


def read_curve(file: Path, metric: str) -> tuple[list[int], list[float]]:
    """Steps and values of one metric in a run's ``metrics.csv``; empty where there is none."""
    if not file.is_file():
        return [], []
    with file.open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row.get(metric)]
    return [int(row["step"]) + 1 for row in rows], [float(row[metric]) for row in rows]
