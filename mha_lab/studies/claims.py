"""Whether what was measured bears a claim out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mha_lab.reporting.measures import of_summary, write_stat
from mha_lab.reporting.statistics import describe
from mha_lab.studies.measuring import Row
from mha_lab.studies.spec import Claim, Selector

SIGNIFICANT = 0.05
LEAST_SEEDS = 5
"""Of fewer pairs no test could reach the level: with four, p is at least 1/16."""


@dataclass(frozen=True)
class Judged:
    """A claim beside the numbers.

    Attributes:
        claim: what the source says.
        holds: whether the numbers say so too; None where it was not measured.
        ours: the numbers, in words.
        p: of the test; None where there was none.
    """

    claim: Claim
    holds: bool | None
    ours: str
    p: float | None = None


def judge(claim: Claim, rows: Sequence[Row]) -> Judged:
    """Compare a claim with all rows of a study."""
    if claim.is_ordering:
        return _ordering(claim, rows)
    values = list(by_seed(rows, claim.measure, claim.at | (claim.of or {})).values())
    if not values:
        return Judged(claim, None, "not measured")
    mean = math.fsum(values) / len(values)
    is_low = claim.at_least is not None and not mean >= claim.at_least
    is_high = claim.at_most is not None and not mean <= claim.at_most
    return Judged(claim, not (is_low or is_high), written(values, claim.measure))


def verdict(judged: Sequence[Judged]) -> str:
    """The finding in one word, of the claims that were measured."""
    held = [one.holds for one in judged if one.holds is not None]
    if not held:
        return "not measured"
    if all(held):
        return "reproduced"
    return "partly" if any(held) else "not reproduced"


def by_seed(rows: Sequence[Row], measure: str, selector: Selector) -> dict[int, float]:
    """A number for each seed: the mean over all rows of it that are selected."""
    found: dict[int, list[float]] = {}
    for row in select(rows, selector):
        if isinstance(row.get(measure), int | float):
            found.setdefault(row["seed"], []).append(float(row[measure]))
    return {seed: math.fsum(values) / len(values) for seed, values in sorted(found.items())}


def select(rows: Sequence[Row], selector: Selector) -> list[Row]:
    """The rows whose columns have the values, or one of the values, that are named."""
    wanted = {
        key: {str(one) for one in (value if isinstance(value, list) else [value])}
        for key, value in selector.items()
    }
    return [row for row in rows if all(str(row.get(k)) in v for k, v in wanted.items())]


def written(values: Sequence[float], measure: str) -> str:
    """Mean ± standard deviation, as tables write it."""
    return write_stat(describe(values), of_summary(measure).style)


def p_value(higher: Sequence[float], lower: Sequence[float], test: str) -> float:
    """How likely a difference as large is if the order were chance; one-sided.

    Args:
        higher: a value a seed.
        lower: likewise, of the same seeds.
        test: ``paired``: all ways to swap the values of a pair are counted. ``rank``: Mann-Whitney.
    """
    # Imported here: it takes half a second, and only a whole study needs it.
    from scipy import stats

    if test == "rank":
        return float(stats.mannwhitneyu(higher, lower, alternative="greater").pvalue)

    def difference(x: Any, y: Any, axis: int) -> Any:
        return np.mean(x - y, axis=axis)

    result = stats.permutation_test(
        (np.array(higher), np.array(lower)),
        difference,
        permutation_type="samples",
        alternative="greater",
        n_resamples=10**5,
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue)


def _ordering(claim: Claim, rows: Sequence[Row]) -> Judged:
    high = by_seed(rows, claim.measure, claim.at | (claim.higher or {}))
    low = by_seed(rows, claim.measure, claim.at | (claim.lower or {}))
    seeds = sorted(high.keys() & low.keys())
    if not seeds:
        return Judged(claim, None, "not measured")
    above, below = [high[seed] for seed in seeds], [low[seed] for seed in seeds]
    ours = f"{written(above, claim.measure)} against {written(below, claim.measure)}"
    is_apart = math.fsum(above) - math.fsum(below) > claim.by * len(seeds)
    if len(seeds) < LEAST_SEEDS:
        return Judged(claim, is_apart, ours)
    p = p_value(above, below, claim.test)
    return Judged(claim, is_apart and p < SIGNIFICANT, f"{ours} (p = {p:.2g})", p)
