"""How figures look: one drawing, as PNG for files and as SVG whose colours follow the page.

Colours are chosen so that people who confuse red and green can tell them apart (Okabe & Ito 2008,
"Color Universal Design"); lines bear their names, so that no legend has to be looked up.
"""

import io
import re
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mha_lab.reporting.document import Picture

INK, MUTED, GRID, PAPER = "#20262e", "#68717d", "#e3e6ea", "#ffffff"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
_PIXELS_PER_INCH = 96
# What each colour is called in the page's style sheet, which has light and dark ones.
_VARIABLES = {
    **{INK: "--ink", MUTED: "--muted", GRID: "--rule", PAPER: "--paper"},
    **{colour: f"--series-{i}" for i, colour in enumerate(SERIES)},
}
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED,
    "axes.facecolor": PAPER,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "text.color": INK,
    "text.parse_math": False,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "none",  # text stays text: it can be searched, and takes the page's font
    "svg.hashsalt": "mha_lab",  # the same runs give the same bytes
    "image.interpolation": "none",
}


def style() -> Any:
    """A context in which figures are made and saved."""
    return mpl.rc_context(_STYLE)


def picture(figure: Figure, name: str, *, caption: str, alt: str) -> Picture:
    """Save a figure in both forms; call it inside :func:`style`."""
    lay_out(figure)
    png, svg = io.BytesIO(), io.StringIO()
    figure.savefig(png, format="png", dpi=160)
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    width = round(figure.get_figwidth() * _PIXELS_PER_INCH)
    return Picture(name, png.getvalue(), themed(svg.getvalue(), name), caption, alt, width)


def lay_out(figure: Figure) -> None:
    """Place everything once and for all; else each saving and measuring would do it again."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def themed(svg: str, name: str) -> str:
    """Make a saved SVG part of a page: its colours variables, its fonts the page's, its ids own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r" font-family: [^;\"]*;?", "", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    return re.sub(r'(url\(|href=")#', rf"\1#{name}-", svg).strip()


def name_lines(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Write the names of lines at their right ends, moved apart where they would overlap.

    Args:
        axes: with its final limits, in a figure of final size.
        ends: for each line the height of its end (data), its name and its colour.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # so that the height of the axes is known
    to_axes = axes.transData + axes.transAxes.inverted()
    x = axes.get_xlim()[1]
    ends = sorted(ends)
    heights = [min(1.0, max(0.0, float(to_axes.transform((x, y))[1]))) for y, _, _ in ends]
    room = 15 / 72 / (figure.get_figheight() * axes.get_position().height)
    for (_, name, colour), height in zip(ends, spread(heights, room), strict=True):
        at: Any = {"transform": axes.transAxes, "clip_on": False}
        axes.add_line(Line2D([1.03, 1.08], [height, height], color=colour, lw=2.2, **at))
        axes.text(1.10, height, name, va="center", fontsize=10, **at)


def spread(heights: list[float], room: float) -> list[float]:
    """Move heights apart by at least ``room``, each as little as possible, inside 0 to 1.

    Args:
        heights: ascending.
        room: the least distance.
    """
    last = len(heights) - 1
    blocks: list[tuple[float, int]] = []  # where the first label of a block would be, times count
    for i, height in enumerate(heights):
        total, count = min(max(height, i * room), 1 - (last - i) * room), 1
        while blocks and _first(blocks[-1]) + blocks[-1][1] * room > _first((total, count)):
            before, members = blocks.pop()
            total, count = before + total - count * members * room, members + count
        blocks.append((total, count))
    return [_first(block) + i * room for block in blocks for i in range(block[1])]


def _first(block: tuple[float, int]) -> float:
    return block[0] / block[1]
