"""The tab as a person uses it: a real TensorBoard, driven in headless Chromium.

Screenshots of what the tests saw lie in pytest's temporary folder, or in ``$MHA_LAB_SCREENSHOTS``.
"""

import csv
import io
import os
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from browser_tab import ARGUMENTS, CHROMIUM, Tab, tensorboard, wait_until
from stored_maps import HOSTILE, make_map, with_tokens, write_run

from mha_lab import read_attention

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"needs {CHROMIUM}"),
]
HEADS, LENGTH, STEPS = 8, 64, range(0, 500, 50)
WORDS = ["<bos>", "the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "<eos>"]


def words(count):
    return [WORDS[i % len(WORDS)] for i in range(count)]


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    shapes = [(f"encoder.layers.{i}.self_attn", "self") for i in range(2)]
    shapes.append(("decoder.layers.0.self_attn", "masked"))

    def small(name, kind, seed):
        one = make_map(name, kind=kind, shape=(2, 3, 11, 11), seed=seed)
        return with_tokens(one, words(11), words(11))

    for run, offset in (("copy/custom", 0), ("copy/builtin", 100)):
        maps = {
            step: [small(name, kind, offset + step + i) for i, (name, kind) in enumerate(shapes)]
            for step in STEPS
        }
        write_run(folder / run, maps)
    large = [
        make_map(f"layers.{i}.attn", kind="self", shape=(1, HEADS, LENGTH, LENGTH), seed=i)
        for i in range(2)
    ]
    write_run(folder / "large", dict.fromkeys(STEPS, large))
    many = [
        make_map(f"layers.{i}.attn", kind="masked", shape=(1, 8, 13, 13), seed=i) for i in range(50)
    ]
    write_run(folder / "many", {0: many})
    hostile = with_tokens(
        make_map(f"layer {HOSTILE}", kind="self", shape=(1, 2, 5, 5)),
        [HOSTILE, "\u202eback", "", " ", "\0\n"],
        [HOSTILE, "</script><script>parent.hacked=1</script>", "&lt;b&gt;", "{{1}}", "a\tb"],
    )
    write_run(folder / "b<i>old", {0: [hostile]})
    return folder


@pytest.fixture(scope="module")
def address(logdir):
    with tensorboard(logdir) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def tab(browser, address, request, tmp_path):
    """The tab at 1280 × 800; fails the test on any error of the page, and takes a screenshot."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    opened = Tab(page, address)
    yield opened
    shots = Path(os.environ.get("MHA_LAB_SCREENSHOTS", tmp_path))
    shots.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=shots / f"{request.node.name}.png")
    page.close()
    assert opened.errors == []


def test_every_head_is_drawn_and_named(tab):
    tab.open(alone=False, run="large")
    assert tab.get(".tile canvas").count() == HEADS
    assert tab.get(".tile .link").all_text_contents() == [f"head {i}" for i in range(HEADS)]
    drawn = tab.get(".tile canvas").evaluate_all(
        "nodes => nodes.map(n => new Set(n.getContext('2d')"
        ".getImageData(0, 0, n.width, n.height).data).size)"
    )
    assert min(drawn) > 50
    assert tab.get(".tile").last.bounding_box()["y"] < 760  # all eight without scrolling
    assert re.fullmatch(r"entropy \d\.\d\d", tab.get(".tile .score").first.text_content())


def test_hover_tells_tokens_and_weight_and_marks_row_and_column(tab, logdir):
    tab.open(alone=False, run="copy/custom", view="map", head=1)
    tab.hover(4, 7)
    [stored] = read_attention(
        logdir / "copy/custom", name="encoder.layers.0.self_attn", step=STEPS[-1]
    )
    assert tab.get(".tooltip .pair b").all_text_contents() == ["fox  4", "a  7"]
    weight = stored.weights[0, 1, 4, 7]
    assert float(tab.get(".tooltip .weight").text_content()) == pytest.approx(weight, rel=1e-3)
    row, column = tab.get(".band:visible").all()
    canvas = tab.get(".heatmap canvas")
    left, top, cell = (float(part) for part in canvas.get_attribute("data-cells").split())
    box = canvas.bounding_box()
    assert row.bounding_box()["y"] == pytest.approx(box["y"] + top + 4 * cell, abs=1)
    assert column.bounding_box()["x"] == pytest.approx(box["x"] + left + 7 * cell, abs=1)
    assert tab.get(".chip:visible").all_text_contents() == ["fox", "a"]


def test_hover_marks_the_same_place_in_every_head(tab):
    tab.open(run="large")
    tab.hover(10, 20, map_index=2)
    assert tab.get(".band:visible").count() == 2 * HEADS
    assert "head 2" in tab.get(".tooltip").text_content()
    tab.page.mouse.move(5, 300)
    tab.get(".tooltip").wait_for(state="hidden")
    assert tab.get(".band:visible").count() == 0


def test_click_enlarges_a_head_and_escape_leads_back(tab):
    tab.open(run="large")
    tab.get(".tile canvas").nth(5).click()
    tab.get(".single canvas").wait_for()
    tab.until_state(view="map", head="5")
    assert tab.chooser("Head").input_value() == "5"
    tab.press("Escape")
    tab.get(".tile").first.wait_for()


def test_choose_run_layer_head_sample_and_step(tab):
    tab.open()
    tab.chooser("Run").select_option("copy/builtin")
    tab.until_text(".heading h2", "copy/builtin")
    tab.chooser("Layer").select_option(label="decoder.layers.0.self_attn")
    tab.until_text(
        ".subtitle", "decoder.layers.0.self_attn · step 450 · masked · 11 × 11 · sample 0"
    )
    tab.chooser("Sample").select_option("1")
    tab.until_text(".subtitle", "sample 1")
    tab.chooser("Head").select_option(label="head 2")
    tab.get(".single").wait_for()
    tab.get("input[type=range]").fill("3")
    tab.until_text(".subtitle", "step 150")
    tab.until_text("output", "step 150")
    tab.until_state(
        run="copy/builtin",
        layer="attention/decoder.layers.0.self_attn",
        sample="1",
        head="2",
        step="150",
        view="map",
    )


def test_layers_are_in_the_order_of_the_model(tab):
    tab.open(run="copy/custom")
    names = ["encoder.layers.0.self_attn", "encoder.layers.1.self_attn"]
    names.append("decoder.layers.0.self_attn")
    assert tab.get(".layer").all_text_contents() == names


def test_the_mean_of_the_heads(tab, logdir):
    tab.open(run="copy/custom", view="map", head="mean")
    tab.hover(3, 3)
    [stored] = read_attention(
        logdir / "copy/custom", name="encoder.layers.0.self_attn", step=STEPS[-1]
    )
    mean = stored.weights[0].mean(0)[3, 3]
    assert float(tab.get(".tooltip .weight").text_content()) == pytest.approx(mean, rel=1e-3)


def test_it_plays_to_the_last_step(tab):
    tab.open(run="copy/custom", step=0, speed=16)
    assert tab.get("output").text_content() == "step 0"
    tab.press(" ")
    assert tab.button("Pause").count() == 1
    tab.until_text("output", f"step {STEPS[-1]}")
    tab.button("Play").wait_for()
    tab.until_state(step=None)


@pytest.mark.parametrize("view", ["heads", "overview"])
def test_what_is_played_is_fetched_ahead_and_together(tab, view):
    tab.open(run="copy/custom", step=0, speed=8, view=view)
    tab.page.wait_for_load_state("networkidle")
    asked = []
    tab.page.on("request", lambda request: asked.append(urlsplit(request.url)))
    tab.press(" ")
    tab.until_text("output", f"step {STEPS[-1]}")
    tab.button("Play").wait_for()
    alone = [parse_qs(url.query) for url in asked if url.path.endswith("/map")]
    assert {one["step"][0] for one in alone} <= {str(STEPS[-1])}  # at rest, the layers beside
    together = [parse_qs(url.query) for url in asked if url.path.endswith("/several")]
    assert {step for one in together for step in one["step"]} >= {str(one) for one in STEPS[5:]}
    assert {len(one["tag"]) for one in together} == {3 if view == "overview" else 1}


def test_pause_keeps_the_step(tab):
    tab.open(run="copy/custom", step=0, speed=2)
    tab.button("Play").click()
    tab.until_text("output", "step 50")
    tab.button("Pause").click()
    shown = tab.get("output").text_content()
    tab.page.wait_for_timeout(900)
    assert tab.get("output").text_content() == shown


def test_two_runs_side_by_side(tab, logdir):
    tab.open(alone=False, run="copy/custom")
    tab.button("Compare").click()
    tab.chooser("Run of pane B").select_option("copy/builtin")
    tab.until_state(vs="copy/builtin")
    tab.until_text(".pane:nth-child(2) h2", "copy/builtin")
    left, right = (pane.bounding_box() for pane in tab.get(".pane").all())
    assert left["y"] == right["y"]
    assert left["width"] == pytest.approx(right["width"], abs=1)
    tab.hover(2, 5, map_index=1)
    expected = [
        read_attention(logdir / run, name="encoder.layers.0*", step=STEPS[-1])[0].weights[
            0, 1, 2, 5
        ]
        for run in ("copy/custom", "copy/builtin")
    ]
    shown = [float(text) for text in tab.get(".tooltip .weight").all_text_contents()]
    assert shown == pytest.approx(expected, rel=1e-3)
    assert tab.get(".band:visible").count() == 2 * 6
    tab.chooser("Layer of this pane").select_option(label="decoder.layers.0.self_attn")
    tab.until_state(layer2="attention/decoder.layers.0.self_attn")
    tab.button("Remove pane B").click()
    tab.until_state(vs=None, layer2=None)
    assert tab.get(".pane").count() == 1


def test_runs_of_different_layers_and_shapes_compare(tab):
    tab.open(run="copy/custom", vs="large", layer="attention/encoder.layers.1.self_attn")
    tab.until_text(".pane:nth-child(2) h2", "large")
    assert tab.get(".pane:nth-child(1) .tile").count() == 3
    assert tab.get(".pane:nth-child(2) .tile").count() == HEADS


def test_scales_change_the_colours(tab):
    tab.open(run="copy/custom", view="map", head=0)
    seen = set()

    def fingerprint():
        return tab.get(".heatmap canvas").evaluate("node => node.toDataURL()")

    for scale in ("Row", "Head", "Global"):
        for kind in ("Linear", "Root", "Log"):
            tab.button(scale).click()
            tab.button(kind).click()
            tab.until_state(curve=None if kind == "Root" else kind.lower())
            tab.page.wait_for_timeout(150)
            seen.add(fingerprint())
    assert len(seen) == 9
    before = tab.get(".legend").first.text_content()
    assert re.fullmatch(r"\d\.\de−5\d?\.\d+", before) or "e−" in before


def test_lines_of_one_query(tab):
    tab.open(run="copy/custom", view="lines", head=2)

    def ink():
        return tab.get(".lines canvas").evaluate("node => node.toDataURL()")

    everything = ink()
    box = tab.get(".lines canvas").bounding_box()
    x, y = box["x"] + 120, box["y"] + box["height"] * 0.5
    tab.page.mouse.move(x, y)
    tab.page.wait_for_timeout(100)
    one = ink()
    assert one != everything
    tab.page.mouse.click(x, y)
    wait_until(lambda: "query" in tab.state())
    tab.page.mouse.move(5, 300)
    tab.page.wait_for_timeout(100)
    assert ink() == one  # it stays


def test_a_cell_leads_to_the_lines_of_its_query(tab):
    tab.open(run="copy/custom", view="map", head=1)
    tab.hover(6, 2)
    tab.page.mouse.down()
    tab.page.mouse.up()
    tab.get(".lines canvas").wait_for()
    tab.until_state(view="lines", query="6", head="1")


def test_navigator_sorts_and_chooses(tab):
    tab.open(run="many")
    tab.chooser("Score").select_option("entropy")
    tab.button("High").click()
    tab.get(".rank-row").first.wait_for()
    values = [float(text) for text in tab.get(".rank-row .value").all_text_contents()]
    assert len(values) == 400
    assert values == sorted(values, reverse=True)
    tab.button("Low").click()
    tab.until_state(order="low")
    wait_until(
        lambda: float(tab.get(".rank-row .value").first.text_content()) == pytest.approx(values[-1])
    )
    tab.get(".rank-row").nth(3).click()
    tab.get(".single canvas").wait_for()
    assert tab.get(".rank-row.chosen").count() == 1


def test_filter_of_layers(tab):
    tab.open(run="many")
    tab.press("/")
    tab.page.keyboard.type("layers.7")
    wait_until(lambda: tab.get(".layer").count() == 1)
    tab.page.keyboard.press("Escape")
    tab.get(".cell").nth(2).click()
    tab.until_state(layer="attention/layers.7.attn", head="2")


def test_four_hundred_maps(tab):
    tab.open(run="many", view="overview")
    assert tab.get(".thumbnail").count() == 400
    tab.get(".thumbnail").last.scroll_into_view_if_needed()
    wait_until(lambda: tab.get(".thumbnail canvas").last.evaluate("node => node.width") > 60)
    drawn = tab.get(".thumbnail canvas").evaluate_all(
        "all => all.filter(n => n.width < 200).length"
    )
    assert drawn < 400  # what has not been in sight is not drawn
    tab.get(".thumbnail").last.click()
    tab.until_state(layer="attention/layers.49.attn", head="7", view="map")


def test_overview_by_score(tab):
    tab.open(run="many", view="overview", order="high", score="confidence")
    values = [float(text) for text in tab.get(".thumbnail .score").all_text_contents()]
    assert len(values) == 400
    assert values == sorted(values, reverse=True)


def download(tab, kind):
    tab.get("summary.icon-button").click()
    with tab.page.expect_download() as started:
        tab.button(kind).click()
    path = Path(started.value.path())
    return started.value.suggested_filename, path.read_bytes()


@pytest.mark.parametrize("view", ["heads", "map", "lines", "overview"])
def test_download_png(tab, view, tmp_path):
    tab.open(run="copy/custom", vs="copy/builtin", view=view, head="all" if view == "heads" else 1)
    name, content = download(tab, "PNG")
    assert name.startswith("attention_copy-custom-vs-copy-builtin_")
    assert name.endswith("step450.png")
    from matplotlib.image import imread

    picture = imread(io.BytesIO(content))
    assert picture.shape[0] > 300
    assert len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 100
    shots = Path(os.environ.get("MHA_LAB_SCREENSHOTS", tmp_path))
    (shots / f"figure_{view}.png").write_bytes(content)


@pytest.mark.parametrize("run", ["copy/custom", "b<i>old", "large"])
@pytest.mark.parametrize("view", ["heads", "map", "lines"])
def test_download_svg(tab, run, view):
    tab.open(run=run, view=view, head="all" if view == "heads" else 0)
    name, content = download(tab, "SVG")
    assert re.fullmatch(r"[A-Za-z0-9._-]+\.svg", name)
    root = ElementTree.fromstring(content)
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert run in texts
    names = {element.tag.partition("}")[2] for element in root.iter()}
    assert names <= {"svg", "g", "rect", "text", "path", "image"}
    assert not any(key.startswith("on") for element in root.iter() for key in element.attrib)


@pytest.mark.parametrize(("view", "heads"), [("heads", [0, 1, 2]), ("map", [1]), ("map", ["mean"])])
def test_download_csv(tab, logdir, view, heads):
    tab.open(run="copy/custom", view=view, head="all" if view == "heads" else heads[0], step=100)
    _, content = download(tab, "CSV")
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    [stored] = read_attention(logdir / "copy/custom", name="encoder.layers.0*", step=100)
    assert len(rows) == len(heads) * 11 * 11
    for row in rows[:: len(rows) // 30]:
        q, k = int(row["query"]), int(row["key"])
        head = row["head"]
        weights = stored.weights[0].mean(0) if head == "mean" else stored.weights[0, int(head)]
        assert abs(float(row["weight"]) - weights[q, k]) <= float(row["error_at_most"])
        assert float(row["error_at_most"]) < 2e-5
        assert (row["query_token"], row["key_token"]) == (words(11)[q], words(11)[k])
        assert (row["run"], row["map"]) == ("copy/custom", "encoder.layers.0.self_attn")


def test_download_csv_of_scores(tab):
    tab.open(run="many", view="overview", order="low", score="entropy")
    _, content = download(tab, "CSV")
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    values = [float(row["entropy"]) for row in rows]
    assert len(values) == 400
    assert values == sorted(values)


def test_csv_keeps_hostile_tokens_exactly(tab, logdir):
    tab.open(run="b<i>old", view="map", head=0)
    _, content = download(tab, "CSV")
    rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    [stored] = read_attention(logdir / "b<i>old")
    assert [row["key_token"] for row in rows[:5]] == stored.key_tokens[0]


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        ("ArrowRight", {"step": 100}, {"step": "150"}),
        ("ArrowLeft", {"step": 100}, {"step": "50"}),
        ("Home", {"step": 100}, {"step": "0"}),
        ("End", {"step": 100}, {"step": None}),
        ("f", {}, {"live": "0"}),
        ("ArrowDown", {}, {"layer": "attention/encoder.layers.1.self_attn"}),
        (
            "ArrowUp",
            {"layer": "attention/encoder.layers.1.self_attn"},
            {"layer": "attention/encoder.layers.0.self_attn"},
        ),
        ("]", {"view": "map", "head": 1}, {"head": "2"}),
        ("[", {"view": "map", "head": 1}, {"head": "0"}),
        ("a", {"view": "map", "head": 1}, {"head": None, "view": None}),
        ("m", {}, {"head": "mean", "view": "map"}),
        ("s", {}, {"sample": "1"}),
        ("c", {}, {"vs": "large"}),
        ("2", {}, {"view": "map", "head": "0"}),
        ("3", {}, {"view": "lines"}),
        ("4", {}, {"view": "overview"}),
        ("1", {"view": "overview"}, {"view": None}),
        ("g", {}, {"scale": "global"}),
        ("l", {}, {"curve": "log"}),
        ("p", {}, {"palette": "lagoon"}),
        ("d", {}, {"theme": "light"}),
        ("Escape", {"view": "lines", "query": 3, "head": 1}, {"query": None}),
    ],
)
def test_keys(tab, key, before, after):
    tab.open(run="copy/custom", **before)
    tab.press(key)
    tab.until_state(**after)


def test_keys_without_a_place_in_the_address(tab):
    tab.open(run="copy/custom", view="map", head=0)
    for _ in range(3):
        tab.press("Shift+ArrowDown")
    assert tab.get(".tooltip .pair b").all_text_contents() == ["brown  3", "<bos>  0"]
    tab.press("e")
    assert tab.get(".icons .items").is_visible()
    tab.page.keyboard.press("Enter")
    tab.press("?")
    assert tab.get("dialog").is_visible()
    assert tab.get("dialog kbd").count() == tab.get("dialog dd").count() == 36
    tab.page.keyboard.press("Escape")
    tab.get("dialog").wait_for(state="hidden")


def test_a_link_leads_to_the_same_place(tab, browser, address):
    tab.open(alone=False, run="copy/custom")
    tab.button("Lines").click()
    tab.chooser("Layer").select_option(label="decoder.layers.0.self_attn")
    tab.press("ArrowLeft")
    tab.button("Log").click()
    tab.until_state(view="lines", step="400", curve="log")
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    other = Tab(page, address).go(tab.page.url)
    other.until_text(".subtitle", tab.get(".subtitle").text_content())
    assert other.state() == tab.state()
    other.get(".lines canvas").wait_for()
    page.close()


def test_the_address_is_followed(tab):
    tab.open(alone=False, run="copy/custom")
    tab.page.evaluate("location.hash = 'mha_lab_attention&p.mha_lab_attention.run=large'")
    tab.until_text(".heading h2", "large")


def test_nonsense_in_the_address_is_passed_over(tab):
    tab.open(run="copy/custom", step="1e9", head="-3", view="sideways", sample="%zz", log="perhaps")
    assert tab.get(".tile").count() == 3


def test_a_head_step_and_sample_beyond_the_map(tab):
    tab.open(run="copy/custom", view="map", head=99, step=99999, sample=99)
    tab.until_text(".subtitle", "step 450")
    tab.until_text(".subtitle", "sample 1")
    assert tab.get(".single canvas").is_visible()


def test_other_tabs_keep_their_addresses(tab):
    tab.open(alone=False, run="copy/custom")
    tab.page.evaluate("location.hash = 'timeseries'")
    tab.page.wait_for_timeout(500)
    assert "p.mha_lab" not in tab.page.url


def test_dark_follows_tensorboard_and_can_be_chosen(tab):
    tab.open(alone=False, run="copy/custom")

    def background():
        return tab.get("body").evaluate("node => getComputedStyle(node).backgroundColor")

    assert background() == "rgb(252, 251, 253)"
    tab.page.evaluate("document.body.classList.add('dark-mode')")
    wait_until(lambda: background() == "rgb(19, 18, 23)")
    tab.press("d")
    wait_until(lambda: background() == "rgb(252, 251, 253)")
    tab.press("d")
    wait_until(lambda: background() == "rgb(19, 18, 23)")
    tab.until_state(theme="dark")


def test_hostile_names_and_tokens_are_text(tab):
    tab.open(run="b<i>old", view="map", head=0)
    assert tab.get(".heading h2").text_content() == "b<i>old"
    tab.hover(0, 1)
    shown = tab.get(".tooltip .pair b").all_text_contents()
    assert shown[0].startswith("<img src=x onerror=")
    assert shown[1].startswith("</script><script>")
    tab.hover(1, 0)
    assert "\u202e" not in tab.get(".tooltip").text_content()
    for view in ("Lines", "All layers", "Heads"):
        tab.button(view).click()
        tab.page.wait_for_timeout(200)
    assert tab.get("img, script[src='x'], i[onerror], b b").count() == 0
    assert tab.page.evaluate("window.hacked") is None
    assert HOSTILE in tab.get(".layer").first.text_content()


def test_a_run_that_is_not_there(tab):
    tab.open(run="nowhere")
    tab.until_text(".message", "There is no run 'nowhere' with attention maps.")
    tab.chooser("Run").select_option("large")
    tab.until_text(".heading h2", "large")


def test_alone_the_page_has_an_address_of_its_own(tab):
    tab.open(run="large")
    tab.press("2")
    tab.get(".single canvas").wait_for()
    assert "plugin_entry.html" in tab.page.url
    tab.until_state(view="map")


@pytest.mark.parametrize("loader", ["auto", "false"])
def test_live_runs_appear_grow_and_vanish(browser, tmp_path, loader):
    """With TensorBoard's fast loader, and with its Python one."""
    runs = tmp_path / "runs"
    runs.mkdir()
    one = make_map("layer", kind="self", shape=(1, 2, 5, 5))
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    with tensorboard(runs, f"--load_fast={loader}") as address:
        # By itself: without any data TensorBoard shows a page of its own and no tab.
        tab = Tab(page, address).open()
        assert "No attention maps yet" in tab.get(".welcome").text_content()
        write_run(runs / "new", {step: [one] for step in range(3)})
        tab.get(".tile canvas").first.wait_for(timeout=30000)
        assert tab.get(".of").text_content() == "3 of 3"
        write_run(runs / "new", {step: [one] for step in range(3, 120)})
        tab.until_text(".of", "120 of 120")
        tab.press("ArrowLeft")
        tab.until_text(".of", "119 of 120")
        write_run(runs / "new", {500: [one]})
        tab.until_text(".of", "119 of 121")  # who looks back is not pulled away
        (runs / "half").mkdir()
        file = max((runs / "new").glob("*tfevents*"), key=lambda file: file.stat().st_size)
        (runs / "half" / file.name).write_bytes(file.read_bytes()[:-50])
        shutil.rmtree(runs / "new")
        tab.until_text(".heading h2", "half")  # the page asks every five seconds
        tab.get(".tile canvas").first.wait_for()
        tab.until_text(".of", "of 116")  # that file's 117 steps but the one cut off
        assert tab.errors == []
    page.close()
