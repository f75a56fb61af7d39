"""One map: its tokens, its figure, its files."""

import subprocess
import sys
import warnings
import xml.etree.ElementTree

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from mha_lab import AttentionMap, record_attention
from mha_lab.maps import palette
from mha_lab.maps.plot import plot_maps
from mha_lab.maps.raster_grid import draw_maps
from mha_lab.maps.raster_text import draw_text, draw_whole

N, H, L, S = 2, 3, 5, 7
HOSTILE = ["<b>", "$x", "", "</script><script>alert(1)</script>", "日本"]


@pytest.fixture
def one():
    weights = torch.rand(N, H, L, S).softmax(-1)
    plain = AttentionMap("decoder.0.cross", weights, "cross", samples=(4, 9), heads=(0, 2, 5))
    return plain.with_tokens([HOSTILE, list("abcde")], [list("tuvwxyz"), list("abcdefg")])


def test_what_a_map_knows_by_itself():
    whole = AttentionMap("x", torch.zeros(N, H, L, S))
    assert (whole.size, whole.samples, whole.heads) == ((L, S), (0, 1), (0, 1, 2))
    assert not whole.is_pooled
    assert whole.head_names() == ["head 0", "head 1", "head 2"]
    assert repr(whole) == "AttentionMap(name='x', kind='self', shape=(2, 3, 5, 7))"
    mean = AttentionMap("x", torch.zeros(N, 1, L, S), heads=None)
    assert mean.head_names() == ["mean of heads"]
    with pytest.raises(ValueError, match=r"'x' have shape \(5, 7\).*\(N, H, L, S\)"):
        AttentionMap("x", torch.zeros(L, S))


def test_tokens_of_a_pooled_map_name_the_first_and_last_of_a_block():
    pooled = AttentionMap("x", torch.zeros(1, 1, 2, 3), size=(4, 3))
    labelled = pooled.with_tokens([["a", "b", "c"]], [["u", "v", "w"]])
    assert labelled.query_tokens == [["a…b", "c…"]]  # the fourth has no label
    assert labelled.key_tokens == [["u", "v", "w"]]


def test_too_many_or_too_few_tokens():
    one = AttentionMap("enc", torch.zeros(2, 1, 2, 2))
    with pytest.raises(ValueError, match=r"'enc'.*3 query tokens.*length 2"):
        one.with_tokens([["a", "b", "c"]] * 2, [["a", "b"]] * 2)
    with pytest.raises(ValueError, match=r"'enc'.*tokens of 1 samples.*2 samples"):
        one.with_tokens([["a", "b"]], [["a", "b"]] * 2)


def test_plot(one):
    figure = one.plot(sample=1, heads=[2, 0])
    assert isinstance(figure, Figure)
    panels = [ax for ax in figure.axes if ax.get_images()]
    assert [ax.get_title(loc="left").strip() for ax in panels] == [
        "decoder.0.cross (cross)\nhead 5",
        "head 0",
    ]
    np.testing.assert_array_equal(panels[0].get_images()[0].get_array(), one.weights[1, 2])
    assert [text.get_text() for text in panels[0].get_xticklabels()] == list("abcdefg")
    assert [text.get_text() for text in panels[0].get_yticklabels()] == list("abcde")
    # One colour scale for all heads, from 0.
    assert {panel.get_images()[0].get_clim() for panel in panels} == {
        (0.0, one.weights[1, [2, 0]].max().item())
    }


@pytest.mark.parametrize("last", ["<eos>", "internationalisation"])
@pytest.mark.parametrize(("heads", "together"), [(1, False), (4, False), (3, True)])
def test_plot_cuts_no_text_and_keeps_square_maps_square(heads, together, last):
    tokens = [[*"abcdefghij", last]]
    one = AttentionMap("decoder.layers.0.cross_attention", torch.rand(1, heads, 11, 11), "cross")
    one = one.with_tokens(tokens, tokens)
    figure = plot_maps([one, one]) if together else one.plot()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    panels = [ax for ax in figure.findobj(Axes) if ax.get_images()]
    assert len(panels) == heads * (1 + together)
    for ax in panels:
        extent = ax.get_tightbbox(canvas.get_renderer())
        assert extent.x0 >= 0
        assert extent.y0 >= 0
        assert extent.x1 <= figure.bbox.width
        assert extent.y1 <= figure.bbox.height
        assert ax.bbox.width / ax.bbox.height == pytest.approx(1, abs=0.2)


def test_plot_knows_no_pyplot(one):
    code = """
import sys, torch
from mha_lab import AttentionMap
AttentionMap("x", torch.ones(1, 1, 2, 2)).plot()
print("matplotlib.pyplot" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_plot_refuses_what_is_not_there(one):
    with pytest.raises(
        ValueError, match=r"sample=2 is not in 'decoder\.0\.cross': it has samples 0 to 1"
    ):
        one.plot(2)
    with pytest.raises(ValueError, match=r"heads=\[3\] are not in .*: there are heads 0 to 2"):
        one.plot(0, [3])
    with pytest.raises(ValueError, match="maps is empty"):
        plot_maps([])


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (1, 2, 40, 3), (1, 9, 3, 40), (1, 1, 150, 150)])
def test_shapes_that_are_hard_to_draw(shape, tmp_path):
    one = AttentionMap("x", torch.full(shape, torch.nan if shape[1] == 2 else 0.0))
    one = one.with_tokens([["$a_{"] * shape[2]], [["long " * 30] * shape[3]])
    one.save(tmp_path / "x.png")


def test_pictures(one, tmp_path):
    assert one.save(str(tmp_path / "map.png"), sample=1) == tmp_path / "map.png"
    with Image.open(tmp_path / "map.png") as picture:
        assert picture.size[0] > 400
    one.save(tmp_path / "map.svg")
    root = xml.etree.ElementTree.parse(tmp_path / "map.svg").getroot()
    assert root.tag.endswith("svg")


def test_numbers_come_back(one, tmp_path):
    one.save(tmp_path / "map.npz")
    back = AttentionMap.load(tmp_path / "map.npz")
    assert torch.equal(back.weights, one.weights)
    assert {**back.__dict__, "weights": 0} == {**one.__dict__, "weights": 0}
    with np.load(tmp_path / "map.npz", allow_pickle=False) as file:
        assert file["weights"].shape == (N, H, L, S)


def test_scores_of_a_pooled_map_come_back(tmp_path):
    module = torch.nn.MultiheadAttention(6, 2)
    x = torch.randn(11, 3, 6)
    with record_attention(module, max_size=5, average_heads=True) as maps:
        module(x, x, x)
    maps[0].save(tmp_path / "map.npz")
    back = AttentionMap.load(tmp_path / "map.npz")
    assert back.is_pooled
    assert back.heads is None
    torch.testing.assert_close(back.scores(), maps[0].scores())
    assert "entropy" in back.scores()


def test_another_suffix(one, tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.png, \.svg, \.html or \.npz"):
        one.save(tmp_path / "map.jpg")


def test_quick_pictures(one):
    maps = one.weights[1].numpy()
    kwargs = {"row_labels": list("abcde"), "column_labels": ["a", "", "long label", *"defg"]}
    drawn = draw_maps(maps, title="x" * 300, names=one.head_names(), **kwargs)
    rgb = drawn.rgb()
    with Image.open(__import__("io").BytesIO(drawn.png())) as picture:
        np.testing.assert_array_equal(np.asarray(picture.convert("RGB")), rgb)
    # The largest weight alone has the darkest colour of the map.
    darkest = (rgb == [22, 23, 49]).all(-1)
    ys, xs = np.nonzero(darkest)
    assert np.ptp(ys) + 1 == np.ptp(xs) + 1 == 13
    assert darkest.sum() == 169


def test_quick_pictures_tell_blocked_from_faint_and_below_zero():
    maps = np.array([[[0.0, 1e-6], [1.0, -1.0]]])
    rgb = draw_maps(maps).rgb()
    colours = {tuple(int(x) for x in c) for c in rgb.reshape(-1, 3)}
    ground, lines, faint, most = (236, 234, 240), (195, 191, 204), (255, 252, 240), (22, 23, 49)
    assert {ground, lines, faint, most} <= colours
    negative = np.rint(palette.negative(72)[-1] * 255).astype(int)
    assert tuple(int(x) for x in negative) in colours
    # Of scores, 0 is a value like any other.
    rgb = draw_maps(maps, zero_is_blocked=False).rgb()
    assert ground not in {tuple(int(x) for x in c) for c in rgb.reshape(-1, 3)}


def test_figures_hatch_what_is_blocked_and_name_what_was_read_and_written():
    weights = torch.tensor([[[[1.0, 0.0], [0.25, 0.75]]]])
    tokens = [["<bos>", "3"]]
    one = AttentionMap("dec", weights, "masked").with_tokens(tokens, tokens)
    figure = plot_maps([one], title="3 1 → $1")
    (panel,) = [ax for ax in figure.findobj(Axes) if ax.get_images()]
    assert panel.get_images()[0].get_array().mask.tolist() == [[False, True], [False, False]]
    assert panel.patch.get_hatch()
    assert any(text.get_text() == r"3 1 → \$1" for text in figure.findobj(Text))
    assert panel.get_images()[0].get_clim() == (0, 1)


def test_figures_of_maps_that_subtract_have_a_scale_of_two_sides():
    one = AttentionMap("dec", torch.tensor([[[[0.5, -0.2], [0.1, 0.3]]]]))
    (image,) = [ax.get_images()[0] for ax in one.plot().axes if ax.get_images()]
    assert image.get_clim() == (-0.5, 0.5)
    low, zero, high = (image.cmap(image.norm(x))[:3] for x in (-0.5, 1e-9, 0.5))
    np.testing.assert_allclose(low, palette.negative(256)[-1])
    np.testing.assert_allclose(zero, palette.ember(256)[0])
    np.testing.assert_allclose(high, palette.ember(256)[-1])


@pytest.mark.parametrize("shape", [(1, 1, 1), (9, 700, 3), (1, 3, 700), (0, 3, 3), (2, 0, 3)])
def test_quick_pictures_of_odd_shapes(shape):
    labels = {"row_labels": ["a"] * shape[1], "column_labels": ["b"] * shape[2]}
    pixels = draw_maps(np.zeros(shape, dtype=np.float32), **labels).pixels
    assert max(pixels.shape) < 4000
    for nothing in (np.nan, np.inf):
        with np.errstate(all="raise"):
            assert draw_maps(np.full(shape, nothing, dtype=np.float32)).pixels.shape[0] > 0


NO_GLYPHS = ["\n", "a\tb", "\ud800", "\r\n", "\x85", "\u2028", "", " "]


@pytest.mark.parametrize("token", [*NO_GLYPHS, "\u05e9\u05dc 12", "1\u0301"])
def test_any_token_and_name_can_be_drawn(token, tmp_path):
    weights = torch.rand(1, 2, 3, 3).softmax(-1)
    one = AttentionMap(f"x{token}", weights).with_tokens([["a", token, "c"]], [["a", token, "c"]])
    labels = {"row_labels": ["a", token, "c"], "column_labels": ["a", token, "c"]}
    assert draw_maps(weights[0].numpy(), title=f"x{token}", **labels).png()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("png", "svg", "html"):
            assert one.save(tmp_path / f"x.{kind}").stat().st_size > 0


def test_a_line_of_text_from_pieces_is_that_of_the_whole():
    """Digits and words are drawn apart, and only where that changes nothing but a pixel of room."""
    for text in ("step 1250", "head 3", "model.layers.0.cross_attn 0 to 0.25"):
        apart, whole = draw_text(text), draw_whole(text)
        assert abs(apart.shape[1] - whole.shape[1]) <= len(text.split())
    for text in ("\u05e9\u05dc 12", "1\u0301", "\u0645\u0661"):  # Hebrew, a combining mark, Arabic
        np.testing.assert_array_equal(draw_text(text), draw_whole(text))
