"""The attention maps that a report shows: of each group's best run, read from its events."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mha_lab.reporting.grouping import Group
from mha_lab.reporting.measures import Measure
from mha_lab.reporting.reading import Run
from mha_lab.view.pooling import PADDING

KINDS = {"self": "self-attention", "masked": "masked self-attention", "cross": "cross-attention"}
MOST_GROUPS = 12  # of more groups, the best ones


@dataclass(frozen=True)
class BestMap:
    """One head's map of one call, for one sample.

    Attributes:
        name: the module's path.
        head: e.g. "head 3", counted from 0.
        weights: (L, S).
        query: L tokens, or None.
        key: S tokens, or None.
    """

    name: str
    head: str
    weights: NDArray[np.float32]
    query: list[str] | None
    key: list[str] | None


@dataclass(frozen=True)
class BestMaps:
    """What a group's best run looks at.

    Attributes:
        group: the group.
        run: its best run; None where none is complete.
        step: the training step of the maps.
        maps: the map of each kind that there is.
        missing: why there is none; empty where there are maps.
    """

    group: Group
    run: Run | None
    step: int = 0
    maps: dict[str, BestMap] | None = None
    missing: str = ""


def best_maps(groups: Sequence[Group], metric: Measure) -> list[BestMaps]:
    """Read the maps of each group's best run, of the best ``MOST_GROUPS`` groups."""
    chosen = sorted(groups, key=lambda group: _rank(group, metric))[:MOST_GROUPS]
    return [_of_group(group, metric) for group in groups if group in chosen]


def _rank(group: Group, metric: Measure) -> float:
    stat = metric.stat(group.complete)
    if stat is None or not np.isfinite(stat.mean):
        return np.inf
    return stat.mean if metric.is_better_low else -stat.mean


def _of_group(group: Group, metric: Measure) -> BestMaps:
    run = metric.best(group.complete)
    if run is None:
        return BestMaps(group, None, missing="none of their runs is complete")
    try:
        step, maps = read_best(run.folder, _best_step(run))
    except (OSError, ValueError) as error:
        return BestMaps(group, run, missing=_why(error))
    return BestMaps(group, run, step, maps)


def _why(error: Exception) -> str:
    text = str(error)
    if isinstance(error, FileNotFoundError):
        return "their runs kept no TensorBoard events"
    return "no attention was recorded in their runs" if "no attention map" in text else text


def _best_step(run: Run) -> int:
    """The step of the lowest validation loss, whose weights were tested; else the last one."""
    steps, losses = run.curves.get("val/loss", ([], []))
    known = [(loss, step) for step, loss in zip(steps, losses, strict=True) if np.isfinite(loss)]
    return int(min(known)[1]) if known else sys.maxsize


def read_best(folder: Path, step: int) -> tuple[int, dict[str, BestMap]]:
    """Read one run's clearest head of the last layer of each kind, at the step nearest to one.

    Raises:
        OSError: there are no event files.
        ValueError: they hold no attention maps, or damaged ones.
    """
    from mha_lab.tensorboard.reader import read_attention

    stored = read_attention(folder)
    nearest = min({one.step for one in stored}, key=lambda there: abs(there - step))
    maps = {}
    for one in stored:
        if one.step == nearest and one.kind in KINDS and one.weights.size:
            head, weights = clearest_head(one.weights[0])
            query = one.query_tokens[0] if one.query_tokens else None
            key = one.key_tokens[0] if one.key_tokens else None
            rows, columns = _used(query, weights.shape[0]), _used(key, weights.shape[1])
            maps[one.kind] = BestMap(  # a later layer of the same kind replaces an earlier one
                name=one.name,
                head=f"head {head}",
                weights=weights[:rows, :columns],
                query=query and query[:rows],
                key=key and key[:columns],
            )
    return nearest, maps


def clearest_head(weights: NDArray[np.float32]) -> tuple[int, NDArray[np.float32]]:
    """The head whose rows' largest weights are largest on average.

    Args:
        weights: (H, L, S).

    Returns:
        Its number, from 0, and its map (L, S).
    """
    head = int(np.nan_to_num(weights).max(axis=2).mean(axis=1).argmax())
    return head, weights[head]


def _used(tokens: list[str] | None, length: int) -> int:
    """How many rows or columns are left without the padding at the end."""
    while tokens and length > 1 and tokens[length - 1] in PADDING:
        length -= 1
    return length
