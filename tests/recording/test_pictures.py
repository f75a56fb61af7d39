"""Pictures of maps: tokens of every script and length can be read, and what a map is, is said."""

import warnings

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg

from mha_lab import AttentionMap
from mha_lab.maps import fonts
from mha_lab.maps.fonts import MISSING, drawable, families, font_of
from mha_lab.maps.raster_grid import draw_maps
from mha_lab.maps.raster_text import draw_whole


def panels_of(figure):
    return [ax for ax in figure.findobj(Axes) if ax.get_images()]


def labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def of_length(length, heads=1, **about):
    tokens = [[f"t{i}" for i in range(length)]]
    weights = torch.rand(1, heads, length, length).softmax(-1)
    return AttentionMap("layer", weights, **about).with_tokens(tokens, tokens)


def test_sixty_tokens_are_all_written_and_longer_maps_have_every_second():
    (panel,) = panels_of(of_length(61).plot())
    assert labels(panel.yaxis) == labels(panel.xaxis) == [f"t{i}" for i in range(61)]
    (panel,) = panels_of(of_length(127).plot())
    assert labels(panel.yaxis) == [f"t{i}" for i in range(0, 127, 2)]


@pytest.mark.parametrize("length", [61, 127])
def test_labels_of_long_maps_do_not_touch(length):
    figure = of_length(length).plot()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (panel,) = panels_of(figure)
    boxes = [text.get_window_extent(canvas.get_renderer()) for text in panel.get_yticklabels()]
    middles = np.array([(box.y0 + box.y1) / 2 for box in boxes])
    # A letter without ascender and descender is about half as high as its line.
    assert (np.abs(np.diff(middles)) > 0.55 * np.array([box.height for box in boxes[1:]])).all()


def test_wide_maps_stand_two_by_two():
    assert {ax.get_subplotspec().colspan.start for ax in panels_of(of_length(61, 5).plot())} == {
        0,
        1,
    }
    assert (
        len({ax.get_subplotspec().colspan.start for ax in panels_of(of_length(7, 5).plot())}) == 4
    )


def test_colour_grows_with_the_root():
    weights = torch.tensor([[[[0.25, 0.01, 0.74], [1.0, 0.0, 0.0], [0.3, 0.3, 0.4]]]])
    (panel,) = panels_of(AttentionMap("x", weights).plot())
    norm = panel.get_images()[0].norm
    np.testing.assert_allclose(norm([0.0, 0.01, 0.25, 1.0]), [0, 0.1, 0.5, 1])
    quick = draw_maps(np.array([[[0.25, 1.0]]], dtype=np.float32)).pixels
    assert round(0.5 * 149) in quick
    assert round(0.25 * 149) in draw_maps(np.array([[[0.25, 1.0]]]), by_root=False).pixels


def test_what_a_map_is_stands_above_it():
    def said(one):
        figure = one.plot()
        bar = next(ax for ax in figure.axes if not ax.get_images() and ax.get_ylabel())
        return panels_of(figure)[0].get_title(loc="left").split("\n")[0], bar.get_ylabel()

    weights = torch.full((1, 1, 2, 2), 0.5)
    assert said(AttentionMap("x", weights, "masked")) == ("x (masked)", "weight")
    pooled = AttentionMap("x", weights, size=(200, 130))
    assert said(pooled) == ("x (self, mean of 200 × 130)", "weight")
    assert "mean of 200 × 130" in repr(pooled)
    by_value = AttentionMap("x", weights, size=(9, 9), pool="max", measure="value-weighted")
    assert said(by_value) == (
        "x (self, value-weighted, largest of 9 × 9)",
        "weight × norm of its value",
    )
    rolled = said(AttentionMap("x", weights, measure="rollout"))
    assert rolled == ("x (self, rollout)", "share of what reaches a position")


SCRIPTS = ["你好", "こんにちは", "한국어", "नमस्ते", "ไทย", "שלום", "می\u200cخواهم"]
SCRIPTS += ["👍🏽", "👩\u200d👩\u200d👧", "🇩🇪", "𝒳", "\ue123"]


def test_every_script_is_drawn_without_a_word_of_missing_glyphs(tmp_path):
    size = len(SCRIPTS)
    one = AttentionMap(SCRIPTS[0], torch.rand(1, 1, size, size)).with_tokens([SCRIPTS], [SCRIPTS])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("png", "svg"):
            one.save(tmp_path / f"x.{kind}")
    assert draw_maps(one.weights[0].numpy(), row_labels=SCRIPTS, column_labels=SCRIPTS).png()


def test_what_no_font_has_is_one_sign_and_the_rest_stays(monkeypatch):
    monkeypatch.setattr(fonts, "_others", list)  # a machine with matplotlib's font alone
    for cached in (drawable, font_of):
        cached.cache_clear()
    try:
        assert drawable("▁the ש é") == "▁the ש é"
        assert drawable("a你b") == f"a{MISSING}b"
        assert drawable("👩‍👩‍👧‍👦") == MISSING
        assert drawable("می‌خواهم") == "می‌خواهم"
        assert families(["abc", "é"]) == ["DejaVu Sans"]
    finally:
        for cached in (drawable, font_of):
            cached.cache_clear()


def test_a_line_of_two_fonts_is_as_long_as_both():
    if font_of("你") is None:
        pytest.skip("no font of this machine has Chinese")
    both, apart = draw_whole("ab你"), [draw_whole("ab"), draw_whole("你")]
    np.testing.assert_array_equal(both, np.hstack(apart))
    assert families(["ab你"])[0] == "DejaVu Sans"
    assert len(families(["ab你"])) == 2
