"""A page with maps inside, as a person uses it: at the sizes that people have, two at once."""

import base64
import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from pages import make_maps, patterned, words
from PIL import Image

import mha_lab
from mha_lab import AttentionMap, show
from mha_lab.maps import palette
from mha_lab.maps.attention_maps import AttentionMaps
from mha_lab.view.gallery import Gallery

pytestmark = pytest.mark.browser

STATIC = Path(mha_lab.__file__).parent / "view" / "static"


def colours_of(page, index=0):
    """The picture of a map as (height, width, 4)."""
    canvas = page.get(".heatmap canvas").nth(index)
    data = canvas.evaluate("n => n.toDataURL()").partition(",")[2]
    return np.array(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA"))


def download(page, kind):
    page.get("summary.icon-button").click()
    with page.page.expect_download() as started:
        page.button(kind).click()
    return Path(started.value.path()).read_bytes()


@pytest.mark.parametrize("length", [64, 200])
@pytest.mark.parametrize("causal", [True, False])
def test_structure_is_seen_at_first_sight(page, tmp_path, length, causal):
    """Some of the cells differ from the lowest colour, in every head."""
    path = make_maps(1, 5, length, causal=causal).save(tmp_path / "a.html")
    page.open(path, palette="ink")
    for head in range(5):
        grey = colours_of(page, head)[1:-1, 1:-1, :3].mean(-1)
        assert (grey < 200).mean() > (0.004 if head < 2 else 0.03 if causal else 0.05), (
            f"head {head} is blank"
        )


def test_hover_tells_token_and_weight(page, tmp_path):
    maps = make_maps()
    page.open(maps.save(tmp_path / "a.html"), view="map", head=1)
    page.page.mouse.move(*page.cell(4, 7))
    assert page.told() == ["fox  4", "a  7"]
    shown = float(page.get(".tooltip .weight").text_content())
    assert shown == pytest.approx(maps[0].weights[0, 1, 4, 7].item(), rel=1e-3)


def test_the_wheel_keys_and_a_frame_zoom_and_dragging_moves(page, tmp_path):
    page.open(make_maps(1, 2, 64).save(tmp_path / "a.html"), view="map", head=0)
    page.page.mouse.move(*page.cell(32, 32))
    page.page.mouse.wheel(0, -200)
    page.get(".subtitle").filter(has_text="49 × 49 of 64 × 64").wait_for()
    page.press("+")
    page.get(".subtitle").filter(has_text="33 × 33 of 64 × 64").wait_for()
    first, last = (int(part) for part in page.state("rows").split("-"))
    x, y = page.cell(10, 10)
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(*page.cell(13, 15), steps=3)
    page.page.mouse.up()
    page.until_state(rows=f"{first - 3}-{last - 3}")
    page.press("0")
    page.get(".subtitle").filter(has_text="64 × 64 ·").wait_for()
    page.page.mouse.move(*page.cell(20, 30))
    page.page.mouse.down()
    page.page.mouse.move(*page.cell(29, 44), steps=3)
    page.page.mouse.up()
    page.until_state(rows="20-29", cols="30-44")
    page.page.mouse.move(*page.cell(0, 0))
    assert [text.split()[-1] for text in page.told()] == ["20", "30"]
    page.press("Escape")
    page.until_state(rows=None)


def test_hidden_tokens_leave_and_rows_are_scaled_anew(page, tmp_path):
    maps = make_maps(1, 4, 11)
    page.open(maps.save(tmp_path / "a.html"), view="map", head=3)
    page.get("summary").filter(has_text="Hide tokens").click()
    page.get(".checks label").filter(has_text="[CLS]").click()
    page.get(".subtitle").filter(has_text="10 × 10 · sample 0 · 2 tokens hidden, rows scaled anew")
    row = maps[0].weights[0, 3, 4, 1:]
    page.press("Escape")
    page.page.mouse.move(*page.cell(3, 6))
    assert page.told() == ["fox  4", "a  7"]
    shown = float(page.get(".tooltip .weight").text_content())
    assert shown == pytest.approx((row[6] / row.sum()).item(), rel=2e-2)


def test_search_marks_tokens_and_enter_leads_to_the_next(page, tmp_path):
    page.open(make_maps(1, 2, 64).save(tmp_path / "a.html"), view="lines", head=0)
    page.press("t")
    page.page.keyboard.type("FOX")
    page.get(".finder .caption").filter(has_text="5 found").wait_for()
    named = []
    for _ in range(3):
        page.page.keyboard.press("Enter")
        page.page.wait_for_timeout(150)
        named.append(page.get(".told").text_content().split("”")[0])
    assert named == ["query 4 “fox", "query 17 “fox", "query 30 “fox"]


def test_a_row_that_was_clicked_is_in_view_in_lines_and_named(page, tmp_path):
    page.open(make_maps(1, 2, 64).save(tmp_path / "a.html"), view="map", head=0)
    page.page.mouse.click(*page.cell(55, 3))
    page.get(".told").filter(has_text="query 55 “").wait_for()
    top, height, y = page.get(".scroller").evaluate(
        "n => [n.scrollTop, n.clientHeight, 26 + 55.5 * 15]"
    )
    assert top < y < top + height


def test_the_largest_keys_alone_and_heads_over_each_other(page, tmp_path):
    maps = make_maps(1, 4, 11)
    page.open(maps.save(tmp_path / "a.html"), view="lines", head=0)

    def lines():
        root = download(page, "SVG").decode()
        return root.count("<path"), root.count('stroke="hsl')

    everything, _ = lines()
    page.page.get_by_role("combobox", name="Keys of each query").select_option("1")
    page.page.wait_for_timeout(100)
    assert everything > 11
    assert lines() == (11, 0)
    page.button("head 2").click()
    page.page.wait_for_timeout(100)
    assert lines() == (22, 22)
    page.until_state(over="0,2")


def test_the_text_is_coloured_by_what_a_token_reads(page, tmp_path):
    maps = make_maps(1, 2, 11)
    page.open(maps.save(tmp_path / "a.html"), view="map", head=0, palette="ink")
    spans = page.get(".strip-of-text .text span")
    assert spans.all_text_contents() == words(11)
    spans.nth(5).hover()

    def lightness():
        return spans.evaluate_all(
            "all => all.map(n => Number(n.style.background.match(/\\d+/)?.[0] ?? 999))"
        )

    assert int(np.argmin(lightness())) == int(maps[0].weights[0, 0, 5].argmax())
    page.button("reads").click()
    spans.nth(5).hover()
    assert int(np.argmin(lightness())) == int(maps[0].weights[0, 0, :, 5].argmax())


def test_a_pooled_map_says_what_it_is(page, tmp_path):
    maps = make_maps(1, 2, 200)
    page.open(maps.save(tmp_path / "a.html", max_size=64))
    page.get(".subtitle").filter(has_text="64 × 64 (mean of 200 × 200)").wait_for()
    page.get("[aria-label=Score] option").nth(6).wait_for(state="attached")
    names = page.get("[aria-label=Score] option").all_text_contents()
    assert names[-2:] == ["duplicate token", "induction"]
    shown = float(page.get(".tile .score").first.text_content().split()[-1])
    assert shown == pytest.approx(maps[0].scores()["entropy"][0].item(), rel=1e-2)


def test_a_difference_is_a_minus_b(page, tmp_path):
    before, after = make_maps(), make_maps(seed=5)
    path = show(before=before, after=after, difference=True).save(tmp_path / "a.html")
    page.open(path, view="map", head=1)
    assert page.get(".pane").count() == 3
    page.page.mouse.move(*page.cell(4, 7, map_index=2))
    a, b, difference = (
        float(text.replace("−", "-")) for text in page.get(".tooltip .weight").all_text_contents()
    )
    expected = [one[0].weights[0, 1, 4, 7].item() for one in (before, after)]
    assert (a, b) == pytest.approx(expected, rel=1e-3)
    assert difference == pytest.approx(expected[0] - expected[1], rel=0.06)
    page.press("v")
    page.get(".pane").nth(2).wait_for(state="detached")


def test_equal_maps_differ_nowhere(page, tmp_path):
    same = make_maps()
    path = show(before=same, after=make_maps(), difference=True).save(tmp_path / "a.html")
    page.open(path, view="map", head=1)
    cells = colours_of(page, 2)[:, :, :3].astype(int)
    assert (cells.max(-1) - cells.min(-1)).max() < 70  # nothing but the page's greys and violet


def test_each_pane_tells_its_own_tokens(page, tmp_path):
    other = [
        "<s>",
        *["one", "two", "three", "four", "five", "six", "seven", "eight"],
        "</s>",
        "<pad>",
    ]
    path = show(before=make_maps(), after=make_maps(tokens=other)).save(tmp_path / "a.html")
    page.open(path, view="map", head=0)
    page.page.mouse.move(*page.cell(4, 7))
    assert page.told() == ["fox  4", "a  7", "four  4", "seven  7"]
    assert page.get(".chip:visible").all_text_contents() == ["fox", "a", "four", "seven"]


def test_maps_of_other_sizes_have_no_difference_and_it_is_said(page, tmp_path):
    path = show(before=make_maps(), after=make_maps(length=13), difference=True).save(
        tmp_path / "a.html"
    )
    page.open(path)
    page.get(".message").filter(has_text="No difference: A is 11 × 11 and B is 13 × 13.").wait_for()


def test_four_panes_and_sample_against_sample(page, tmp_path):
    maps = make_maps(n=5)
    page.open(maps.save(tmp_path / "a.html"))
    for count in (2, 3, 4):
        page.button("Compare").click()
        page.get(".pane").nth(count - 1).wait_for()
    assert not page.button("Compare").is_visible()
    samples = [text.split("sample ")[1] for text in page.get(".subtitle").all_text_contents()]
    assert samples == ["0", "1", "2", "3"]
    page.page.get_by_role("combobox", name="Sample of pane C").select_option("4")
    page.get(".pane:nth-child(3) .subtitle").filter(has_text="sample 4").wait_for()
    page.button("Remove pane B").click()
    page.get(".pane").nth(3).wait_for(state="detached")
    assert page.get(".badge:visible").all_text_contents()[:3] == ["A", "C", "D"]


def test_cross_attention_has_a_text_for_queries_and_one_for_keys(page, tmp_path):
    one = AttentionMap("decoder.cross_attn", patterned(2, 5, 7), "cross")
    maps = Gallery([one.with_tokens([list("abcde")], [list("tuvwxyz")])])
    page.open(maps.save(tmp_path / "a.html"), view="map", head=0)
    texts = page.get(".strip-of-text .text")
    assert texts.nth(0).locator("span").all_text_contents() == list("abcde")
    assert texts.nth(1).locator("span").all_text_contents() == list("tuvwxyz")
    texts.nth(1).locator("span").nth(2).hover()
    coloured = (
        texts.nth(0)
        .locator("span")
        .evaluate_all("all => all.filter(n => n.style.background).length")
    )
    assert coloured == 5


def test_heads_that_share_keys_are_grouped(page, tmp_path):
    one = AttentionMap("attn", patterned(4, 5), key_heads=(0, 0, 1, 1))
    page.open(Gallery([one]).save(tmp_path / "a.html"))
    assert page.get(".tile .link").all_text_contents() == [
        "head 0 · keys 0", "head 1 · keys 0", "head 2 · keys 1", "head 3 · keys 1",
    ]  # fmt: skip
    assert page.get(".tile.grouped.first").count() == 2


AS_WRITTEN = ["👩‍👩‍👧‍👦", "🏳️‍🌈", "می‌خواهم", "שלום", "你好", "1️⃣", "नमस्ते", "é", "👍🏽", "क्‍ष", "한국"]


def test_what_is_not_weights_is_said_in_words(page, tmp_path):
    plain = make_maps(2, 3, 11)
    norms = torch.rand(1, 3, 11, generator=torch.Generator().manual_seed(0))
    maps = AttentionMaps(replace(one, value_norms=norms) for one in plain)
    page.open(maps.value_weighted().save(tmp_path / "weighted.html"))
    said = page.get(".measure").text_content()
    assert said.startswith("Value-weighted: each weight times the norm of its value.")
    assert page.page.get_by_role("combobox", name="Score", exact=True).count() == 0
    page.open(maps.rollout().save(tmp_path / "rollout.html"))
    assert page.get(".measure").text_content().startswith("Rollout: ")
    page.open(maps.save(tmp_path / "plain.html"))
    assert not page.get(".measure").is_visible()
    assert page.page.get_by_role("combobox", name="Score", exact=True).count() == 1


def test_any_script_is_shown_as_written(page, tmp_path):
    page.open(make_maps(1, 2, 11, tokens=AS_WRITTEN).save(tmp_path / "a.html"), view="map", head=0)
    assert page.get(".strip-of-text .text span").all_text_contents() == AS_WRITTEN
    for i, token in enumerate(AS_WRITTEN):
        page.page.mouse.move(*page.cell(i, i))
        assert page.told() == [f"{token}  {i}"] * 2
    svg = download(page, "SVG").decode()
    assert all(token in svg for token in AS_WRITTEN)


def test_what_cannot_be_seen_or_turns_the_text_is_replaced(page, tmp_path):
    tokens = ["\u202eabc", "a\u200bb", "a\u200dc", "\x00", "\n", "\u2066", "", " ", "x", "y", "z"]
    page.open(make_maps(1, 2, 11, tokens=tokens).save(tmp_path / "a.html"), view="map", head=0)
    shown = "".join(page.get(".strip-of-text .text span").all_text_contents())
    assert not set("\u202e\u200b\u200d\u2066\x00") & set(shown)


@pytest.mark.parametrize(("rows", "columns"), [(3, 293), (293, 3)])
def test_a_long_map_is_no_thread(page, tmp_path, rows, columns):
    """Its cells are not square, on the page, under the pointer and in pictures."""
    weights = patterned(2, rows, columns)
    tokens = [[f"q{i}" for i in range(rows)]], [[f"k{i}" for i in range(columns)]]
    maps = Gallery([AttentionMap("cross", weights, "cross").with_tokens(*tokens)])
    for view in ("heads", "map"):
        page.open(maps.save(tmp_path / "a.html"), view=view)
        box = page.get(".heatmap canvas").first.bounding_box()
        assert min(box["width"], box["height"]) > 36
        page.page.mouse.move(*page.cell(rows - 1, columns - 2))
        assert page.told() == [f"q{rows - 1}  {rows - 1}", f"k{columns - 2}  {columns - 2}"]
    picture = Image.open(io.BytesIO(download(page, "PNG")))
    assert min(picture.size) > 72 + 20
    page.button("All layers").click()
    page.page.wait_for_function("document.querySelector('.thumbnail canvas').width !== 300")
    box = page.get(".thumbnail canvas").first.bounding_box()
    assert min(box["width"], box["height"]) == pytest.approx(104 / 6, abs=1)


def test_tiles_that_are_ranked_otherwise_are_moved(page, tmp_path):
    page.open(make_maps(3, 5, 13).save(tmp_path / "a.html"), view="overview", order="high")
    names = page.get(".thumbnail").evaluate_all("all => all.map((one) => (one.own = one.title))")
    page.button("Low").click()
    page.until_state(order="low")
    page.page.wait_for_function(f"document.querySelector('.thumbnail').title !== {names[0]!r}")
    tiles = page.get(".thumbnail")
    titles = tiles.evaluate_all("all => all.map((one) => one.title)")
    assert sorted(titles) == sorted(names)
    assert tiles.evaluate_all("all => all.map((one) => one.own)") == titles
    assert page.get(".thumbnail .place").all_text_contents() == [f"{i}" for i in range(1, 16)]
    values = [float(text) for text in page.get(".thumbnail .score").all_text_contents()]
    assert values == sorted(values)


@pytest.mark.parametrize("length", [64, 200])
def test_pictures_of_long_maps_have_their_tokens(page, tmp_path, length):
    page.open(make_maps(1, 2, length).save(tmp_path / "a.html"), view="map", head=0)
    svg = download(page, "SVG").decode()
    assert svg.count(">fox</text>") == 2 * words(length).count("fox")
    from matplotlib.image import imread

    picture = imread(io.BytesIO(download(page, "PNG")))
    assert min(picture.shape[:2]) > 11 * length


def test_a_picture_of_four_hundred_maps(page, tmp_path):
    path = make_maps(50, 8, 13).save(tmp_path / "a.html")
    page.open(path, view="overview")
    png = download(page, "PNG")
    assert png.startswith(b"\x89PNG")
    assert len(png) > 100_000


@pytest.mark.parametrize("shape", [(1, 3, 0, 0), (1, 3, 4, 0)])
def test_a_picture_of_maps_that_are_empty(page, tmp_path, shape):
    path = Gallery([AttentionMap("x", torch.zeros(shape))]).save(tmp_path / "a.html")
    page.open(path, view="overview")
    assert download(page, "PNG").startswith(b"\x89PNG")
    assert not page.errors


def test_csv_has_the_digits_that_it_has(page, tmp_path):
    maps = make_maps(1, 12, 64)
    page.open(maps.save(tmp_path / "a.html"))
    rows = list(csv.DictReader(io.StringIO(download(page, "CSV").decode())))
    assert len(rows) == 12 * 64 * 64
    weights = maps[0].weights[0].numpy()
    for row in rows[:: len(rows) // 500]:
        value = weights[int(row["head"]), int(row["query"]), int(row["key"])]
        assert abs(float(row["weight"]) - value) <= float(row["error_at_most"])
        assert len(row["weight"].replace(".", "").lstrip("0").split("e")[0]) <= 3


def test_csv_says_what_its_numbers_are(page, tmp_path):
    weights = patterned(2, 7)
    for about, said in (
        ({}, "weights"),
        ({"size": (20, 30)}, "weights, mean of 20 × 30"),
        ({"size": (20, 30), "pool": "max", "measure": "rollout"}, "rollout, largest of 20 × 30"),
    ):
        path = AttentionMap("x", weights, **about).save(tmp_path / "a.html")
        rows = csv.DictReader(io.StringIO(download(page.open(path), "CSV").decode()))
        assert {row["numbers"] for row in rows} == {said}
    path = make_maps(1, 2, 11).save(tmp_path / "a.html")
    for choices, said in (
        ({"rows": "2-5"}, "weights"),  # a part of a map is no mean of it
        ({"hide": '["fox"]'}, "weights, rows scaled anew"),
    ):
        page.open(path, view="map", **choices)
        rows = csv.DictReader(io.StringIO(download(page, "CSV").decode()))
        assert {row["numbers"] for row in rows} == {said}


@pytest.mark.parametrize("width", [390, 900, 1060, 1280])
@pytest.mark.parametrize("panes", [1, 2])
def test_controls_wrap_and_lie_over_nothing(page, tmp_path, width, panes):
    maps = make_maps(n=3)
    shown = maps if panes == 1 else None
    path = show(shown, before=None if shown else maps, after=None if shown else make_maps())
    page.page.set_viewport_size({"width": width, "height": 800})
    page.open(path.save(tmp_path / "a.html"), view="map", head=0)
    boxes = page.get(
        ".controls button:visible, .controls select:visible, .controls input:visible, "
        ".controls summary:visible, .legend:visible"
    ).evaluate_all(
        "all => all.filter(n => n.checkVisibility()).map(n => [n.getBoundingClientRect().toJSON(),"
        " n.textContent.trim() || n.ariaLabel])"
    )
    assert len(boxes) > 15
    for i, (a, name) in enumerate(boxes):
        assert a["left"] >= 0, name
        assert a["right"] <= width + 0.5, name
        for b, other in boxes[:i]:
            over = min(a["right"], b["right"]) - max(a["left"], b["left"])
            down = min(a["bottom"], b["bottom"]) - max(a["top"], b["top"])
            assert over <= 1 or down <= 1, f"{name} lies over {other}"
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width


def test_steps_of_a_training_in_a_file(page, tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    from mha_lab import read_attention
    from mha_lab.tensorboard.writer import write_attention

    with SummaryWriter(str(tmp_path / "run")) as writer:
        for step in range(0, 50, 10):
            write_attention(writer, make_maps(seed=step), step)
    maps = read_attention(tmp_path / "run")
    page.open(maps.save(tmp_path / "a.html"), view="map", head=0)
    page.get("output").filter(has_text="step 40").wait_for()
    page.press("ArrowLeft")
    page.get("output").filter(has_text="step 30").wait_for()
    page.button("Compare").click()
    page.get(".pane:nth-child(2) .subtitle").filter(has_text="step 0").wait_for()
    page.page.get_by_role("combobox", name="Step of pane B").select_option("20")
    page.get(".pane:nth-child(2) .subtitle").filter(has_text="step 20").wait_for()
    page.page.mouse.move(*page.cell(4, 7))
    expected = [maps[i * 2].weights[0, 0, 4, 7] for i in (3, 2)]
    told = page.get(".tooltip .weight").all_text_contents()
    shown = [float(text.replace("−", "-")) for text in told]
    assert shown == pytest.approx(expected, rel=1e-2)


def test_a_map_that_is_not_a_number_is_shown(page, tmp_path):
    weights = patterned(2, 5)
    weights[0, 0] = torch.nan
    page.open(Gallery([AttentionMap("x", weights)]).save(tmp_path / "a.html"), view="map", head=0)
    page.page.mouse.move(*page.cell(1, 1))
    assert page.get(".tooltip .weight").text_content() == "not a number"


def test_pictures_have_the_colours_of_the_page(page):
    """The palette is computed twice, once in each language."""
    source = (STATIC / "draw" / "palette.js").read_text(encoding="utf-8")
    address = "data:text/javascript;base64," + base64.b64encode(source.encode()).decode()
    found = page.page.evaluate(f"import({address!r}).then((m) => [...m.colours('ember', false)])")
    mine = np.concatenate([palette.ember(256), palette.negative(256)]) * 255
    np.testing.assert_array_equal(np.rint(mine).ravel(), found)
    assert palette.BLOCKED in (STATIC / "style.css").read_text(encoding="utf-8")
