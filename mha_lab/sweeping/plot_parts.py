"""What the pictures of a sweep share.

No pyplot: it would keep every figure, and choose a window system.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure

from mha_lab.maps import palette
from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.results import Result
from mha_lab.sweeping.settings import MAXIMIZE

PRUNED = "#b8b8b8"
BEST = "#0072b2"  # blue: the shades, of which the best is the darkest, hold none
_LIGHTEST = 50  # of 256 shades: lines of the ones before would be lost on white


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, file: Path) -> None:
    """Write a PNG."""
    figure.savefig(file, dpi=120)


class Colors:
    """The first objective as a color, dark where it is good.

    Args:
        plan: the sweep.
        results: its trials.
    """

    def __init__(self, plan: Plan, results: Sequence[Result]) -> None:
        self.name = plan.settings.objectives[0]
        values = [r.objectives[self.name] for r in results if r.objectives]
        finite = [value for value in values if math.isfinite(value)] or [0.0]
        low, high = min(finite), max(finite)
        is_higher_better = plan.settings.directions[0] == MAXIMIZE
        shades = palette.ember(256)[_LIGHTEST:]
        self._map = ListedColormap(shades if is_higher_better else shades[::-1])
        self._tells = high > low
        self._norm = Normalize(low, high if high > low else low + 1)
        self._worst = low if is_higher_better else high

    def of(self, result: Result) -> Any:
        """The color of a trial; grey where it was not completed."""
        if not result.is_complete:
            return PRUNED
        value = result.objectives[self.name]
        return self._map(self._norm(value if math.isfinite(value) else self._worst))

    def bar(self, figure: Figure, axes: Any) -> None:
        """Draw the legend of the colors, unless they are all the same."""
        if not self._tells:
            return
        figure.colorbar(ScalarMappable(self._norm, self._map), ax=axes, label=self.name, pad=0.02)
