"""Figures and tables of numbers that are known."""

from pathlib import Path

import pytest

from mha_lab.reporting.drawing import style
from mha_lab.studies.figures import draw
from mha_lab.studies.reading import read
from mha_lab.studies.spec import FigureSpec
from mha_lab.studies.study import Study
from mha_lab.studies.tables import mean_rows, table

VALUES = {("1", "none"): (0.2, 0.4), ("2", "none"): (0.5, 0.7), ("2", "rotary"): (0.9, 1.0)}
ROWS = [
    {"layers": layers, "position": position, "seed": seed}
    | {"lengths": lengths, "accuracy": value / k}
    for (layers, position), values in VALUES.items()
    for seed, value in enumerate(values)
    for k, lengths in enumerate(("1-3", "4-5"), 1)
]  # fmt: skip


@pytest.fixture
def study(tiny: Path) -> Study:
    return read(tiny)


def test_a_heatmap_writes_each_mean_into_its_cell(study: Study) -> None:
    spec = FigureSpec("heatmap", "accuracy", x="layers", colour="position", at={"lengths": "1-3"})
    with style():
        (axes,) = draw(study, spec, ROWS).axes
    written = {(text.get_position(), text.get_text()) for text in axes.texts}
    # (column, row): one and two layers across, none and rotary down; one cell has no runs.
    assert written == {((0, 0), "0.30"), ((1, 0), "0.60"), ((1, 1), "0.95")}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["none", "rotary"]


def test_points_show_every_seed_and_the_mean(study: Study) -> None:
    spec = FigureSpec("points", "accuracy", x="layers", panels="position", at={"lengths": "4-5"})
    with style():
        none, rotary = draw(study, spec, ROWS).axes
    seeds, mean = none.lines[0], none.lines[1]
    assert seeds.get_ydata().tolist() == [0.1, 0.2]
    assert mean.get_ydata()[0] == pytest.approx(0.15)
    assert [axes.get_title(loc="left") for axes in (none, rotary)] == [
        "position none",
        "position rotary",
    ]
    assert len(rotary.lines) == 2, "no runs of one layer there"


def test_lines_are_means_over_a_column(study: Study) -> None:
    spec = FigureSpec("lines", "accuracy", x="lengths", colour="layers", panels="position")
    with style():
        none, rotary = draw(study, spec, ROWS).axes
    one, two = none.lines
    assert one.get_ydata() == pytest.approx([0.3, 0.15])
    assert two.get_ydata() == pytest.approx([0.6, 0.3])
    assert rotary.lines[0].get_color() == two.get_color(), "a level has one colour everywhere"


def test_a_table_has_a_column_for_each_place(study: Study) -> None:
    study.spec.show[:] = ["accuracy"]
    shown = table(study, ROWS)
    assert shown.columns == ["layers", "position", "accuracy 1-3", "accuracy 4-5"]
    assert shown.rows[0] == ["1", "none", "0.3000 ± 0.1414", "0.1500 ± 0.0707"]
    assert shown.rows[1] == ["1", "rotary", "–", "–"]
    means = {(r["layers"], r["position"], r["lengths"]): r["mean"] for r in mean_rows(study, ROWS)}
    assert means["2", "rotary", "4-5"] == pytest.approx(0.475)
    assert len(means) == 6


def test_bands_of_accuracies_end_at_one(study: Study) -> None:
    rows = [
        row | {"accuracy": accuracy} for row, accuracy in zip(ROWS, (0.7, 1.0) * 6, strict=True)
    ]
    spec = FigureSpec("lines", "accuracy", x="lengths", colour="layers", panels="position")
    with style():
        all_axes = draw(study, spec, rows).axes
    heights = [
        y
        for axes in all_axes
        for band in axes.collections
        for path in band.get_paths()
        for y in path.vertices[:, 1]
    ]
    assert max(heights) == 1.0


def test_a_heatmap_says_what_its_numbers_are(study: Study) -> None:
    spec = FigureSpec("heatmap", "accuracy", x="layers", colour="position", panels="lengths")
    with style():
        titles = [axes.get_title(loc="left") for axes in draw(study, spec, ROWS).axes]
    assert titles == ["lengths 1-3: accuracy", "lengths 4-5: accuracy"]
