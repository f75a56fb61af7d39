"""The figure: entropy, accuracy and the first token's weight, by length, a line a weighting."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mha_lab.reporting.drawing import SERIES, band
from mha_lab.reporting.statistics import describe
from mha_lab.studies.claims import by_seed
from mha_lab.studies.study import Study

SHOWN = {
    "entropy": "entropy of a row of weights, nats",
    "token_accuracy_free": "values recalled",
    "first_token": "weight on the first token",
}


def draw(study: Study, rows: list[dict[str, Any]]) -> Figure:
    """A panel a measure; bands are standard deviations over the seeds."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    for axes, (measure, title) in zip(figure.subplots(1, len(SHOWN)), SHOWN.items(), strict=True):
        lines(rows, axes, measure)
        axes.set_title(title)
        axes.set_xlabel("length (training: 8-16)")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    return figure


def lines(rows: list[dict[str, Any]], axes: Any, measure: str) -> None:
    """The mean over the seeds at each length."""
    there = [row for row in rows if measure in row]
    lengths = list(dict.fromkeys(row["lengths"] for row in there))
    names = [one.removeprefix(f"{one.split('-')[1]}-") for one in lengths]  # 32-32 is 32
    for i, weighting in enumerate(dict.fromkeys(row["weighting"] for row in there)):
        where = {"weighting": weighting}
        stats = [
            describe(by_seed(there, measure, where | {"lengths": one}).values()) for one in lengths
        ]
        mean = np.array([one.mean if one else np.nan for one in stats])
        sd = np.array([(one.sd or 0.0) if one else np.nan for one in stats])
        colour, dashes = SERIES[i % len(SERIES)], "-" if i < len(SERIES) else "--"
        axes.plot(names, mean, dashes, color=colour, marker="o", ms=4, label=weighting)
        band(axes, names, mean, sd, colour, 0.0, 1.0 if measure != "entropy" else np.inf)
