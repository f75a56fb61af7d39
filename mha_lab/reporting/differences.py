"""What is not as one would think: configs that differ, runs that the grid lacks or has twice."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from mha_lab.reporting.grouping import REPEATING, Group, natural_value


def differing_between(groups: Sequence[Group]) -> dict[str, list[str]]:
    """The keys that are one inside each group and differ between groups.

    Args:
        groups: groups with complete runs.

    Returns:
        For each key its value in each group. The grouping keys and the seed are left out.
    """
    keys = dict.fromkeys(key for group in groups for run in group.complete for key in run.values)
    found = {}
    for key in keys:
        if key == "seed" or key in groups[0].by or key.split(".")[-1] in REPEATING:
            continue
        values = [{run.text(key) for run in group.complete} for group in groups]
        if all(len(one) == 1 for one in values) and len(set.union(*values)) > 1:
            found[key] = [one.pop() for one in values]
    return found


@dataclass(frozen=True)
class Holes:
    """What a full grid of groups and seeds would have and these runs have not.

    Attributes:
        seeds: groups, each with the seeds that others have and it has not.
        combinations: combinations of ``by`` values without any run.
        repeated: groups, each with the seeds of which it has several complete runs.
    """

    seeds: list[tuple[Group, list[Any]]]
    combinations: list[tuple[str, ...]]
    repeated: list[tuple[Group, list[Any]]]


def find_holes(groups: Sequence[Group]) -> Holes:
    """Compare what is there with the full grid of ``by`` values and seeds."""
    seeds = sorted({run.seed for group in groups for run in group.runs}, key=natural_value)
    missing, repeated = [], []
    for group in groups:
        there = {run.seed for run in group.runs}
        if absent := [seed for seed in seeds if seed not in there]:
            missing.append((group, absent))
        complete = Counter(run.seed for run in group.complete)
        if twice := [seed for seed in seeds if complete[seed] > 1]:
            repeated.append((group, twice))
    values = list(zip(*(group.key for group in groups), strict=True))
    keys = {group.key for group in groups}
    full = product(*(dict.fromkeys(one) for one in values)) if groups else ()
    return Holes(missing, [key for key in full if key not in keys], repeated)
