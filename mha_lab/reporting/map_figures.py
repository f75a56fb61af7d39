"""Pictures of the best maps: a column a group, a row a kind of attention."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure

from mha_lab.maps.colours import colours_of, show_weights
from mha_lab.maps.printable import WRITES
from mha_lab.reporting import drawing
from mha_lab.reporting.best_maps import KINDS, BestMap, BestMaps
from mha_lab.reporting.document import Picture
from mha_lab.reporting.map_example import in_and_out, rows

_PER_FIGURE = 5
# Inches: a map, the room for its tokens and its title, a line of the groups' names.
_MAP, _LEFT, _BELOW, _ABOVE, _LINE = 1.5, 0.75, 0.55, 0.42, 0.21
_COLUMN, _ROW = _LEFT + _MAP + 0.1, _ABOVE + _MAP + _BELOW
_MOST_TOKENS, _LONGEST = 16, 7  # written along a side; letters of a token
_MOST_LETTERS = 34  # of the example above a column


def draw_maps(found: Sequence[BestMaps]) -> list[Picture]:
    """Draw maps, a column a group and a row a kind of attention; a figure for five groups."""
    shown = [one for one in found if one.maps]
    count = -(-len(shown) // _PER_FIGURE)
    size = -(-len(shown) // max(1, count))  # five and one would look worse than three and three
    parts = [shown[i * size : (i + 1) * size] for i in range(count)]
    return [_draw_part(part, i, len(parts)) for i, part in enumerate(parts)]


def _draw_part(found: Sequence[BestMaps], part: int, parts: int) -> Picture:
    kinds = [kind for kind in KINDS if any(kind in (one.maps or {}) for one in found)]
    head = _LINE * (2 + max(one.group.label.count(" · ") for one in found))
    width, height = _COLUMN * len(found), head + _ROW * len(kinds)
    figure = Figure(figsize=(width, height))
    for j, one in enumerate(found):
        for i, kind in enumerate(kinds):
            bottom = height - head - (i + 1) * _ROW + _BELOW
            axes = drawing.place(figure, j * _COLUMN + _LEFT, bottom, _MAP, _MAP)
            if i == 0:
                _head(axes, one.group.label, in_and_out(one.maps or {}))
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
        "last layer. Above: what was read → what was to be written. Rows are queries, with the "
        "token that each was to write; columns are keys; the darker, the more, up to 1; hatched: "
        "exactly 0.",
        wide=True,
        alt="attention maps, a column a group, a row a kind of attention",
    )


def _head(axes: Axes, label: str, example: str) -> None:
    """Write a group's name above its column, a line a value, and the example below it."""
    lines = label.replace(" · ", "\n")
    at: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(lines, (0, 1), (0, 49), fontsize=10.5, weight="bold", **at)
    axes.annotate(_elided(example, _MOST_LETTERS), (0, 1), (0, 34), fontsize=9, **at)


def _elided(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _draw_map(axes: Axes, one: BestMap | None, kind: str) -> None:
    axes.grid(visible=False)
    axes.set_anchor("NW")
    for spine in axes.spines.values():
        spine.set_visible(False)
    _label(axes.xaxis, one.key if one else None)
    _label(axes.yaxis, rows(one.query or []) if one else None)
    if one is None:
        axes.set_title(f"{kind}\nnone", fontsize=9, color=drawing.MUTED)
        return
    axes.set_title(f"{kind}\n{one.head}", fontsize=9, color=drawing.MUTED)
    show_weights(axes, one.weights, colours_of(one.weights, highest=1.0))
    axes.set_aspect("equal")


def _label(axis: Axis, tokens: list[str] | None) -> None:
    """Write the tokens along an axis, as many as there is room for; long ones below stand."""
    tokens = tokens or []
    every = max(1, -(-len(tokens) // _MOST_TOKENS))
    shown = [
        WRITES.join(_elided(part, _LONGEST) for part in token.split(WRITES)) for token in tokens
    ]
    axis.set_ticks(range(0, len(tokens), every), labels=shown[::every])
    axis.set_tick_params(labelsize=8, labelcolor=drawing.INK)
    for written in axis.get_ticklabels():
        is_long = isinstance(axis, XAxis) and len(written.get_text()) > 2
        written.set_rotation(90 if is_long else 0)
