"""How figures look: one drawing, as PNG for files and as SVG whose colours follow the page.

Colours are chosen so that people who confuse red and green can tell them apart (Okabe & Ito 2008,
"Color Universal Design"); lines bear their names, so that no legend has to be looked up.
"""

import io
import math
import re
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from mha_lab.maps import palette
from mha_lab.reporting.document import Picture

INK, MUTED, GRID, PAPER = "#20262e", "#68717d", "#e3e6ea", "#ffffff"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
_SHARE_STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
_PIXELS_PER_INCH = 96
_WIDE = 700  # pixels; a picture wider than these would have too small letters on a phone
# What each colour is called in the page's style sheet, which has light and dark ones.
_VARIABLES = {
    **{INK: "--ink", MUTED: "--muted", GRID: "--rule", PAPER: "--paper"},
    **{colour: f"--series-{i}" for i, colour in enumerate(SERIES)},
}
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 11,
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


def shades() -> ListedColormap:
    """The colours of numbers in a table: those of attention maps, light for little."""
    return ListedColormap(palette.ember(256))


def ink_on(share: float) -> str:
    """The ink that is read best on the shade of a share of the most; the same on a dark page."""
    red, green, blue = palette.ember(256)[round(255 * min(1.0, max(0.0, share)))] ** 2.2
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000000" if luminance > 0.18 else "#fefefe"  # where black and white are read alike


def place(
    figure: Figure,
    left: float,
    bottom: float,
    width: float,
    height: float,
    like: Axes | None = None,
) -> Axes:
    """Add axes at a place in inches, with the limits of other axes where these are given.

    Everything has a fixed place, because finding one automatically takes as long as all drawing.
    """
    all_width, all_height = figure.get_size_inches()
    rect = left / all_width, bottom / all_height, width / all_width, height / all_height
    return figure.add_axes(rect, sharex=like, sharey=like)


def picture(figure: Figure, name: str, *, caption: str, alt: str, wide: bool = False) -> Picture:
    """Save a figure in both forms; call it inside :func:`style`.

    Args:
        figure: what to save.
        name: of its file, without the ending.
        caption: what it shows.
        alt: the same for those who do not see it.
        wide: whether it keeps its width on a narrow screen.
    """
    png, svg = io.BytesIO(), io.StringIO()
    figure.savefig(png, format="png", dpi=160)
    png = without_alpha(png)
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    width = round(figure.get_figwidth() * _PIXELS_PER_INCH)
    return Picture(
        name,
        png.getvalue(),
        themed(svg.getvalue(), name),
        caption,
        alt,
        width,
        wide or width > _WIDE,
    )


def without_alpha(png: io.BytesIO) -> io.BytesIO:
    """The same picture in a tenth less: nothing in a figure is seen through."""
    small = io.BytesIO()
    Image.open(png).convert("RGB").save(small, format="PNG")
    return small


def themed(svg: str, name: str) -> str:
    """Make a saved SVG part of a page: its colours variables, its fonts the page's, its ids own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r" font-family: [^;\"]*;?", "", svg)
    svg = _short(svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    return re.sub(r'(url\(|href=")#', rf"\1#{name}-", svg).strip()


def _short(svg: str) -> str:
    """The same drawing in half the letters.

    Groups that hold nothing, names of groups, indents, and digits beyond a hundredth of a point,
    which nobody sees.
    """
    used = set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", svg))
    svg = re.sub(r'<g id="[^"]*"\s*/>', "", svg)
    svg = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", svg)
    svg = re.sub(
        r'(?<= )(?:d|x|y|width|height|transform)="[^"]*"',
        lambda found: re.sub(r"\d+\.\d{3,}", _rounded, found[0]),
        svg,
    )
    svg = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", svg)
    return re.sub(r"\s*\n\s*", "\n", svg)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def share_axis(low: float, high: float) -> tuple[tuple[float, float], list[float]]:
    """Limits around the shares that there are, and ticks, of which none is beyond 1."""
    if not low <= high:  # nothing is drawn
        low, high = 0.0, 1.0
    low = min(low, high - 0.02)
    limits = low - 0.06 * (high - low), high + 0.06 * (high - low)
    # Counted down from 1, the value that everyone looks for.
    step = next((s for s in _SHARE_STEPS if (limits[1] - limits[0]) / s <= 6), 0.25)
    down = range(math.ceil((1 - limits[1]) / step), math.floor((1 - limits[0]) / step) + 1)
    return limits, [round(1 - i * step, 4) for i in down if i >= 0]


def band(
    axes: Axes,
    x: Any,
    mean: NDArray[np.float64],
    sd: NDArray[np.float64],
    colour: str,
    low: float = -math.inf,
    high: float = math.inf,
) -> None:
    """Fill what is within one standard deviation of a mean, and between two limits.

    Args:
        axes: where.
        x: numbers, or the names of places.
        mean: at each of them.
        sd: standard deviation at each.
        colour: of the line.
        low: least that the quantity can be; 0 of a share.
        high: the most; 1 of a share.
    """
    bottom, top = np.clip(mean - sd, low, high), np.clip(mean + sd, low, high)
    axes.fill_between(x, bottom, top, color=colour, alpha=0.16, lw=0)
