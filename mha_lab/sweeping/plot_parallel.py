"""Parallel coordinates: a line a trial, across its values, to what it reached."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.plot_parts import BEST, Colors, new_figure
from mha_lab.sweeping.results import Result, best, number
from mha_lab.sweeping.space import Parameter, Space, Value

Place = Callable[[Value], float]
Ticks = dict[float, str]
_TICKS = 5


def draw_parallel(plan: Plan, space: Space, results: Sequence[Result]) -> Figure:
    """Draw the trials; pruned ones in grey, as far as their values go."""
    shown = [r for r in results if r.trial.params.keys() == space.keys()]
    scales = [(key, *_parameter_scale(parameter)) for key, parameter in space.items()]
    scales += [(name, *_objective_scale(name, shown)) for name in plan.settings.objectives]
    figure = new_figure(1.8 + 1.9 * len(scales), 4.8)
    axes = figure.subplots()
    colors = Colors(plan, shown)
    labels: set[str] = set()
    for result in reversed(shown):  # the best last, on top
        values = {**result.trial.params, **result.objectives}
        heights = [place(values[key]) for key, place, _ in scales if key in values]
        is_complete = result.is_complete
        axes.plot(
            range(len(heights)),
            heights,
            color=colors.of(result),
            linewidth=1.6 if is_complete else 0.8,
            alpha=0.85 if is_complete else 0.6,
            zorder=2 if is_complete else 1,
            label=None if is_complete or "pruned" in labels else "pruned or failed",
        )
        labels |= set() if is_complete else {"pruned"}
    if winner := best(shown):
        values = {**winner.trial.params, **winner.objectives}
        heights = [place(values[key]) for key, place, _ in scales]
        label = f"best: trial {winner.trial.number}"
        axes.plot(range(len(heights)), heights, color=BEST, linewidth=3, zorder=3, label=label)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.02), frameon=False, ncols=2)
    for x, (_, _, ticks) in enumerate(scales):
        _draw_scale(axes, x, ticks)
    axes.set(xlim=(-0.35, len(scales) - 0.6), ylim=(-0.06, 1.06), yticks=[])
    axes.set_xticks(range(len(scales)), [key for key, *_ in scales])
    axes.spines[:].set_visible(False)
    colors.bar(figure, axes)
    return figure


def _draw_scale(axes: Axes, x: int, ticks: Ticks) -> None:
    axes.axvline(x, 0.05, 0.95, color="black", linewidth=1, zorder=4)
    for height, text in ticks.items():
        axes.text(
            x + 0.04,
            height,
            text,
            va="center",
            fontsize=8,
            zorder=5,
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1},
        )


def _parameter_scale(parameter: Parameter) -> tuple[Place, Ticks]:
    match parameter.distribution:
        case CategoricalDistribution(choices=choices):
            is_numeric = all(isinstance(choice, int | float) for choice in choices)
            order = sorted(choices) if is_numeric else list(choices)  # type: ignore[type-var]
            step = 1 / max(1, len(order) - 1)
            return (
                lambda value: order.index(value) * step,
                {i * step: number(choice) for i, choice in enumerate(order)},
            )
        case (
            IntDistribution(low=low, high=high, log=log)
            | FloatDistribution(low=low, high=high, log=log)
        ):
            return _linear_scale(low, high, log=log)
    raise TypeError(f"no such distribution: {parameter.distribution}")


def _objective_scale(name: str, results: Sequence[Result]) -> tuple[Place, Ticks]:
    """From the lowest to the highest value; infinity (never solved) lies at the top."""
    values = [result.objectives[name] for result in results if result.objectives]
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) == len(values):
        return _linear_scale(min(finite, default=0.0), max(finite, default=1.0))
    place, ticks = _linear_scale(min(finite, default=0.0), max(finite, default=1.0), top=0.85)
    return lambda value: place(value) if math.isfinite(float(value)) else 1.0, {**ticks, 1.0: "∞"}


def _linear_scale(
    low: float, high: float, *, log: bool = False, top: float = 1.0
) -> tuple[Place, Ticks]:
    if low == high:
        return lambda value: 0.5, {0.5: number(low)}
    bend: Callable[[float], float] = math.log if log else float
    start, width = bend(low), (bend(high) - bend(low)) / top
    is_whole = isinstance(low, int)
    count = min(_TICKS, int(high - low) + 1) if is_whole else _TICKS
    marks = np.geomspace(low, high, count) if log else np.linspace(low, high, count)
    texts = [str(round(mark)) for mark in marks] if is_whole else _told_apart(marks.tolist())
    heights = np.linspace(0, top, count).tolist()
    return (
        lambda value: (bend(float(value)) - start) / width,
        dict(zip(heights, texts, strict=True)),
    )


def _told_apart(marks: Sequence[float]) -> list[str]:
    """Numbers with as few digits, two or more, as make none of them the same."""
    texts: list[str] = []
    for digits in range(2, 10):
        texts = [f"{mark:.{digits}g}" for mark in marks]
        if len(set(texts)) == len(texts):
            break
    return texts
