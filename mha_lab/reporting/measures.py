"""What is measured of a run, and how its numbers are written."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from mha_lab.errors import UserError, nearest
from mha_lab.reporting.reading import Run
from mha_lab.reporting.statistics import Stat, describe

Style = Literal["share", "small", "seconds", "count", "size"]
_LOWER_IS_BETTER = ("loss", "error", "seconds", "steps", "perplexity", "parameters")


@dataclass(frozen=True)
class Measure:
    """One column of the main table.

    Attributes:
        name: its heading.
        of: the number of a run; None where it has none.
        style: how it is written: a ``share`` with four decimals, a ``small`` number with three
            significant digits, ``seconds`` with one decimal, a ``count`` as a whole number, a
            ``size`` likewise but without ± 0.
        is_better_low: whether the lower one is the better one.
    """

    name: str
    of: Callable[[Run], float | None]
    style: Style
    is_better_low: bool = True

    def stat(self, runs: Sequence[Run]) -> Stat | None:
        """Its mean and standard deviation over complete runs."""
        return describe(self.of(run) for run in runs)

    def best(self, runs: Sequence[Run]) -> Run | None:
        """The run with the best value; of equal ones that with the fewest steps."""
        measured = [(run, self.of(run)) for run in runs]
        found = [(run, v) for run, v in measured if v is not None and math.isfinite(v)]
        sign = 1 if self.is_better_low else -1
        ranked = sorted(found, key=lambda pair: (sign * pair[1], pair[0].number("steps") or 0))
        return ranked[0][0] if ranked else None


def of_summary(key: str) -> Measure:
    """The measure that a number of ``summary.json`` is."""
    name = key.removeprefix("test/").replace("_", " ")
    is_low = any(word in name.split() for word in _LOWER_IS_BETTER)
    style: Style = "small"
    if "accuracy" in name:
        style = "share"
    elif "seconds" in name:
        style = "seconds"
    elif key in ("steps", "parameters"):
        style = "count" if key == "steps" else "size"
    return Measure(name, lambda run: run.number(key), style, is_low)


STEPS_TO_SOLVE = Measure(
    "steps to solve", lambda run: run.number("steps") if run.status == "solved" else None, "count"
)
SECONDS_TO_SOLVE = Measure(
    "seconds to solve",
    lambda run: run.number("train_seconds") if run.status == "solved" else None,
    "seconds",
)


def beyond_training(runs: Sequence[Run]) -> list[Measure]:
    """Accuracy at lengths beyond training, one measure for each multiple that a run was tested at.

    Args:
        runs: complete ones.
    """
    found = {-(-max(run.lengths) // run.trained[1]) for run in runs if run.trained and run.lengths}
    return [
        Measure(f"accuracy up to {n}×", partial(Run.accuracy_up_to, multiple=n), "share", False)
        for n in range(2, max(found, default=1) + 1)
        if any(run.accuracy_up_to(n) is not None for run in runs)
    ]


def main_measures(metric: str, beyond: Sequence[Measure] = ()) -> list[Measure]:
    """The columns of the main table, the chosen metric first."""
    keys = dict.fromkeys([metric, "test/sequence_accuracy", "test/loss"])
    return [
        *(of_summary(key) for key in keys if key != "parameters"),
        *beyond,
        STEPS_TO_SOLVE,
        SECONDS_TO_SOLVE,
        of_summary("parameters"),
    ]


def numeric_keys(runs: Sequence[Run]) -> list[str]:
    """The numbers that the summaries of complete runs have, the seed left out."""
    keys = dict.fromkeys(key for run in runs if run.is_complete for key in run.summary)
    return [
        key
        for key in keys
        if key != "seed" and any(run.number(key) is not None for run in runs if run.is_complete)
    ]


def check_metric(metric: str, runs: Sequence[Run]) -> None:
    """Refuse a metric that no complete run has.

    Raises:
        UserError: names the metric, and the nearest right one.
    """
    known = numeric_keys(runs)
    if known and metric not in known:
        raise UserError(
            f"metric={metric}: no summary has this number{nearest(metric, known)} "
            f"(there are: {', '.join(known)})"
        )


def write_stat(stat: Stat | None, style: Style, *, of: int | None = None) -> str:
    """A mean ± standard deviation: ``0.9987 ± 0.0011``; without ± for a single value.

    Args:
        stat: what to write; a dash for None.
        style: see :class:`Measure`.
        of: how many values there could be; where there are fewer, that is written too.
    """
    if stat is None:
        return "–"
    decimals = _decimals(stat, style)
    written = _number(stat.mean, decimals)
    if stat.sd is not None and not (style == "size" and stat.sd == 0):
        written += f" ± {_number(stat.sd, decimals)}"
    return written if of in (None, stat.n) else f"{written} ({stat.n} of {of})"


def write_number(value: float | None, style: Style) -> str:
    """One number in the style of its column."""
    return "–" if value is None else write_stat(Stat(1, value, None), style)


def _decimals(stat: Stat, style: Style) -> int:
    """Decimals; the standard deviation has as many as its mean."""
    if style == "small":
        size = abs(stat.mean) if math.isfinite(stat.mean) else 0.0
        return 4 if size == 0 else min(9, max(0, 2 - math.floor(math.log10(size))))
    return {"share": 4, "seconds": 1, "count": 0, "size": 0}[style]


def _number(value: float, decimals: int) -> str:
    if math.isnan(value):
        return "not a number"
    return f"{value:,.{decimals}f}"
