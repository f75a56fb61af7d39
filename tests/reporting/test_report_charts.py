import io
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image
from synthetic_runs import write_run

from mha_lab.reporting import drawing, figures, length_figures
from mha_lab.reporting.charts import shades, spread
from mha_lab.reporting.grouping import Group, group_runs
from mha_lab.reporting.measures import of_summary
from mha_lab.reporting.reading import read_runs


def groups_of(*keys):
    return [Group(tuple("abc"[: len(key)]), key, []) for key in keys]


def test_labels_move_apart_as_little_as_possible():
    assert spread([0.1, 0.5, 0.9], 0.1) == [0.1, 0.5, 0.9]
    np.testing.assert_allclose(spread([0.5, 0.5], 0.1), [0.45, 0.55])
    np.testing.assert_allclose(spread([0.2, 0.5, 0.5, 0.52], 0.1), [0.2, 0.4067, 0.5067, 0.6067],
                               atol=1e-3)  # fmt: skip


@pytest.mark.parametrize("heights", [[1.0] * 7, [0.0] * 7, [0.0, 0.05, 0.93, 0.95, 0.97, 1.0, 1.0]])
def test_labels_stay_inside_and_apart(heights):
    moved = spread(heights, 0.1)
    assert min(np.diff(moved)) > 0.1 - 1e-9
    assert moved[0] > -1e-9
    assert moved[-1] < 1 + 1e-9


def test_up_to_seven_groups_share_a_panel_and_each_has_its_colour():
    found = shades(groups_of(*((str(i),) for i in range(7))))
    assert {shade.panel for shade in found} == {""}
    assert len({shade.colour for shade in found}) == 7


def test_more_groups_are_told_apart_by_panel_and_colour():
    found = shades(groups_of(*((str(i), str(j)) for i in range(9) for j in range(3))))
    assert len({shade.panel for shade in found}) == 9
    assert len({(shade.panel, shade.colour) for shade in found}) == 27
    assert [shade.colour for shade in found[:3]] == [shade.colour for shade in found[3:6]]


def test_groups_that_no_few_values_tell_apart_have_a_panel_each():
    found = shades(groups_of(*((str(i),) for i in range(9))))
    assert len({shade.panel for shade in found}) == 9


def test_svg_takes_the_colours_of_the_page_and_only_its_own_ids():
    with drawing.style():
        figure = Figure(figsize=(3, 2))
        axes = drawing.place(figure, 0.5, 0.5, 2, 1)
        axes.plot([0, 1], [0, 1], color=drawing.SERIES[1])
        axes.fill_between([0, 1], [0, 1])
        axes.set_title("a < b & $c$ </svg>")
        one = drawing.picture(figure, "name", caption="", alt="")
    assert one.png.startswith(b"\x89PNG")
    assert one.width == 288
    root = ElementTree.fromstring(one.svg)
    assert "width" not in root.attrib
    assert root.attrib["viewBox"] == "0 0 216 144"
    assert "var(--series-1)" in one.svg
    assert not re.search("#[0-9a-f]{6}", one.svg.replace("#1f77b4", ""))  # but for the band
    assert "font-family" not in one.svg
    ids = set(re.findall(r' id="([^"]*)"', one.svg))
    used = set(re.findall(r'(?:url\(|href=")#([^")]*)', one.svg))
    assert used <= ids
    assert all(each.startswith("name-") for each in ids)
    titles = [text for text in root.itertext() if "a <" in text]
    assert titles == ["a < b & $c$ </svg>"]


@pytest.mark.parametrize("count", [1, 3, 11])
def test_every_number_of_groups_can_be_drawn(tmp_path, count):
    folders = [
        write_run(tmp_path / f"{i}_{seed}", lr=0.001 * (i + 1), seed=seed, loss=0.0 if i else 0.5)
        for i in range(count)
        for seed in (0, 1)
    ]
    groups = group_runs(read_runs(folders), ["optimizer.lr"])
    with drawing.style():
        pictures = [
            figures.every_run(groups, of_summary("test/loss"), "results"),
            length_figures.accuracy_by_length(groups),
            figures.learning_curves(groups, "val/loss", "loss"),
            figures.learning_curves(groups, "val/sequence_accuracy", "accuracy"),
        ]
    for picture in pictures:
        written = "".join(ElementTree.fromstring(picture.svg).itertext())
        assert all(group.label in written for group in groups)


def test_panels_of_accuracy_by_length_hold_every_line(tmp_path, monkeypatch):
    kept: list[Figure] = []
    monkeypatch.setattr(drawing, "picture", lambda figure, *_, **__: kept.append(figure))
    for i in range(9):  # the lowest line is in the first panel
        write_run(tmp_path / str(i), lr=0.001 * (i + 1), lengths={2: 1.0 if i else 0.3, 5: 1.0})
    folders = sorted(tmp_path.iterdir())
    length_figures.accuracy_by_length(group_runs(read_runs(folders), ["optimizer.lr"]))
    panels = [axes for axes in kept[0].axes if axes.lines]
    assert len(panels) == 9
    for axes in panels:
        assert axes.get_ylim()[0] < 0.3
        assert axes.get_ylim()[1] > 1.0


def test_what_was_not_logged_is_not_drawn(tmp_path):
    groups = group_runs(read_runs([write_run(tmp_path / "0")]), ["attention"])
    assert figures.learning_curves(groups, "val/unknown", "x") is None
    assert length_figures.accuracy_by_length(group_runs([], ["attention"])) is None


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.0, 1.0, [1.0, 0.995, 0.99, 0.985, 0.98]),
        (0.55, 1.0, [1.0, 0.9, 0.8, 0.7, 0.6]),
        (0.0, 1.006, [1.0, 0.8, 0.6, 0.4, 0.2, 0.0]),
        (0.1, 0.3, [0.3, 0.25, 0.2, 0.15, 0.1]),
        (np.inf, -np.inf, [1.0, 0.8, 0.6, 0.4, 0.2, 0.0]),  # what empty axes have
    ],
)
def test_ticks_of_shares_are_counted_down_from_one(low, high, expected):
    limits, ticks = drawing.share_axis(low, high)
    np.testing.assert_allclose(ticks, expected, atol=1e-9)
    assert limits[0] < expected[-1]
    assert limits[1] > expected[0]


@pytest.mark.parametrize("share", [i / 40 for i in range(41)])
def test_numbers_on_shades_can_be_read(share: float):
    """The contrast that WCAG 2.2 asks of text, 4.5, by its own formula."""

    def luminance(colour: Any) -> float:
        parts = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    shade, ink = luminance(drawing.shades()(share)), luminance(drawing.ink_on(share))
    assert (max(shade, ink) + 0.05) / (min(shade, ink) + 0.05) >= 4.5


def test_bars_of_shares_end_at_one(tmp_path, monkeypatch):
    kept: list[Figure] = []
    monkeypatch.setattr(drawing, "picture", lambda figure, *_, **__: kept.append(figure))
    folders = [
        write_run(tmp_path / str(i), seed=i, accuracy=accuracy)
        for i, accuracy in enumerate((0.8, 1.0, 1.0))  # mean 0.933, sd 0.115: up to 1.049
    ]
    groups = group_runs(read_runs(folders), ["attention"])
    with drawing.style():
        figures.every_run(groups, of_summary("test/sequence_accuracy"), "results")
    (bar,) = kept[0].axes[0].collections[0].get_segments()
    assert bar[:, 0] == pytest.approx([0.9333 - 0.1155, 1.0], abs=1e-3)


def test_a_drawing_is_made_short_and_stays_the_same():
    with drawing.style():
        figure = Figure(figsize=(3, 2))
        axes = drawing.place(figure, 0.5, 0.5, 2, 1)
        axes.plot([0.123456, 1], [0, 1], "-o")
        axes.imshow(np.eye(3))
        axes.set_title("0.123456 <b>")
        whole = io.StringIO()
        figure.savefig(whole, format="svg")
        found = drawing.picture(figure, "x", caption="", alt="")
    assert len(found.svg) < 0.75 * len(whole.getvalue())
    tree = ElementTree.fromstring(found.svg)
    assert "0.123456 <b>" in "".join(tree.itertext())
    ids = {element.get("id") for element in tree.iter()} - {None}
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', found.svg))
    assert used == ids != set()

    def places(svg):
        words = " ".join(re.findall(r' d="([^"]*)"', svg))
        return [float(word) for word in re.findall(r"-?\d+(?:\.\d+)?", words)]

    np.testing.assert_allclose(places(found.svg), places(whole.getvalue()), atol=0.00501)
    image = Image.open(io.BytesIO(found.png))
    assert image.mode == "RGB"
    assert image.getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize(("lowest", "scale"), [(0.01, "log"), (0.6, "linear")])
def test_an_axis_of_losses_has_numbers(tmp_path, monkeypatch, lowest, scale):
    kept: list[Figure] = []
    monkeypatch.setattr(drawing, "picture", lambda figure, *_, **__: kept.append(figure))
    curve = [(10, 1.9, 0.2), (20, lowest, 0.9)]
    groups = group_runs(read_runs([write_run(tmp_path / "0", curve=curve)]), ["attention"])
    with drawing.style():
        figures.learning_curves(groups, "val/loss", "loss")
        kept[0].draw_without_rendering()
    (axes,) = kept[0].axes
    assert axes.get_yscale() == scale
    low, high = axes.get_ylim()
    labels = [
        label.get_text()
        for place, label in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
        if low <= place <= high and label.get_text()
    ]
    assert len(labels) >= 2
