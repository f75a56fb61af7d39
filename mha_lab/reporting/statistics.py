"""Means and standard deviations over the runs of a group."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mha_lab.reporting.reading import Run
from mha_lab.reporting.run_files import Curve


@dataclass(frozen=True)
class Stat:
    """A sample's size, mean and sample standard deviation (n - 1), None for a single value."""

    n: int
    mean: float
    sd: float | None


def describe(values: Iterable[float | None]) -> Stat | None:
    """Describe the values that are there; None where there are none."""
    found = [value for value in values if value is not None]
    if not found:
        return None
    mean = math.fsum(found) / len(found)
    if len(found) == 1:
        return Stat(1, mean, None)
    squares = math.fsum((value - mean) ** 2 for value in found)
    return Stat(len(found), mean, math.sqrt(squares / (len(found) - 1)))


def by_length(runs: Sequence[Run]) -> dict[int, Stat]:
    """Accuracy by length over runs, for every length that a run was tested on."""
    lengths = sorted({length for run in runs for length in run.lengths})
    stats = {length: describe(run.lengths.get(length) for run in runs) for length in lengths}
    return {length: stat for length, stat in stats.items() if stat is not None}


@dataclass(frozen=True)
class MeanCurve:
    """A mean learning curve.

    Attributes:
        steps: all steps at which a run has a value, from the last of the first ones on.
        mean: the mean over the runs.
        sd: the sample standard deviation; None for a single run.
        first_end: the step at which the first run stopped; from there on the curve holds the last
            values of runs that stopped.
        ends: the last step of each run.
    """

    steps: NDArray[np.float64]
    mean: NDArray[np.float64]
    sd: NDArray[np.float64] | None
    first_end: float
    ends: list[float]


def mean_curve(curves: Sequence[Curve]) -> MeanCurve | None:
    """The mean of curves that were sampled at different steps and end at different steps.

    Between two of its own steps a run is interpolated linearly. A run that stopped early keeps
    its last value, as a model does that is trained no more. Before all runs have a value there is
    no mean.
    """
    curves = [(steps, values) for steps, values in curves if len(steps)]
    if not curves:
        return None
    begin = max(steps[0] for steps, _ in curves)
    grid = np.unique(np.concatenate([steps for steps, _ in curves]))
    grid = grid[grid >= begin]
    table = np.stack([np.interp(grid, steps, values) for steps, values in curves])
    ends = [float(steps[-1]) for steps, _ in curves]
    return MeanCurve(
        steps=grid,
        mean=table.mean(axis=0),
        sd=table.std(axis=0, ddof=1) if len(curves) > 1 else None,
        first_end=min(ends),
        ends=ends,
    )
