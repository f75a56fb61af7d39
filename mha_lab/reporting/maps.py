"""The attention maps of each group's best run, side by side."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mha_lab.reporting import drawing
from mha_lab.reporting.document import Picture
from mha_lab.reporting.grouping import Group
from mha_lab.reporting.measures import Measure
from mha_lab.reporting.reading import Run

KINDS = {"self": "self-attention", "masked": "masked self-attention", "cross": "cross-attention"}
MOST_GROUPS = 12
_PER_FIGURE = 5
# Inches: a map, the room for its tokens and its title, a line of the groups' names.
_MAP, _LEFT, _BELOW, _ABOVE, _LINE = 1.5, 0.6, 0.55, 0.42, 0.21
_COLUMN, _ROW = _LEFT + _MAP + 0.1, _ABOVE + _MAP + _BELOW
_MOST_TOKENS, _LONGEST = 16, 7  # written along a side; letters of a token
_PADDING = ("", "<pad>")


@dataclass(frozen=True)
class BestMap:
    """One head's map of one call, for one sample.

    Attributes:
        name: the module's path.
        head: e.g. "head 3 of 4".
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


def draw(found: Sequence[BestMaps]) -> list[Picture]:
    """Draw maps, a column a group and a row a kind of attention; a figure for five groups."""
    shown = [one for one in found if one.maps]
    count = -(-len(shown) // _PER_FIGURE)
    size = -(-len(shown) // max(1, count))  # five and one would look worse than three and three
    parts = [shown[i * size : (i + 1) * size] for i in range(count)]
    return [_draw_part(part, i, len(parts)) for i, part in enumerate(parts)]


def _rank(group: Group, metric: Measure) -> float:
    stat = metric.stat(group.complete)
    if stat is None:
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
                head=f"head {head + 1} of {one.weights.shape[1]}",
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
    while tokens and length > 1 and tokens[length - 1] in _PADDING:
        length -= 1
    return length


def _draw_part(found: Sequence[BestMaps], part: int, parts: int) -> Picture:
    kinds = [kind for kind in KINDS if any(kind in (one.maps or {}) for one in found)]
    head = _LINE * (1 + max(one.group.label.count(" · ") for one in found))
    width, height = _COLUMN * len(found), head + _ROW * len(kinds)
    figure = Figure(figsize=(width, height))
    for j, one in enumerate(found):
        for i, kind in enumerate(kinds):
            bottom = height - head - (i + 1) * _ROW + _BELOW
            axes = drawing.place(figure, j * _COLUMN + _LEFT, bottom, _MAP, _MAP)
            if i == 0:
                _head(axes, one.group.label)
            _draw_map(axes, (one.maps or {}).get(kind), KINDS[kind])
    of = f" ({part + 1} of {parts})" if parts > 1 else ""
    steps = "; ".join(f"{one.group.label}: {one.step}" for one in found)
    if len({one.step for one in found}) == 1:
        steps = str(found[0].step)
    return drawing.picture(
        figure,
        "attention_maps" if parts == 1 else f"attention_maps_{part + 1}",
        caption=f"Attention of each group's best run{of}, on one validation example, at the step "
        f"whose weights were tested ({steps}). Of each kind of attention, the clearest head of the "
        "last layer. Rows are queries, columns keys; dark is 0, bright is 1.",
        alt="attention maps, a column a group, a row a kind of attention",
    )


def _head(axes: Axes, label: str) -> None:
    """Write a group's name above its column, a line a value."""
    lines = label.replace(" · ", "\n")
    at: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(lines, (0, 1), (0, 34), fontsize=10.5, weight="bold", **at)


def _draw_map(axes: Axes, one: BestMap | None, kind: str) -> None:
    axes.grid(visible=False)
    axes.set_anchor("NW")
    for spine in axes.spines.values():
        spine.set_visible(False)
    _label(axes.xaxis, one.key if one else None)
    _label(axes.yaxis, one.query if one else None)
    if one is None:
        axes.set_title(f"no {kind}\n", fontsize=9, color=drawing.MUTED)
        return
    axes.set_title(f"{kind}\n{one.head}", fontsize=9, color=drawing.MUTED)
    axes.imshow(one.weights, vmin=0, vmax=1, cmap="viridis")


def _label(axis: Axis, tokens: list[str] | None) -> None:
    """Write the tokens along an axis, as many as there is room for; long ones below stand."""
    tokens = tokens or []
    every = max(1, -(-len(tokens) // _MOST_TOKENS))
    shown = [token if len(token) <= _LONGEST else f"{token[: _LONGEST - 1]}…" for token in tokens]
    axis.set_ticks(range(0, len(tokens), every), labels=shown[::every])
    axis.set_tick_params(labelsize=8, labelcolor=drawing.INK)
    for written in axis.get_ticklabels():
        is_long = isinstance(axis, XAxis) and len(written.get_text()) > 2
        written.set_rotation(90 if is_long else 0)
