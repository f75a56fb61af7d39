"""For everyone: axe finds nothing in any view, one tab stop for the heads, keys in every view."""

import pytest
from pages import make_maps
from test_image_in_browser import image_maps

from mha_lab import show

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return make_maps(n=2).save(tmp_path_factory.mktemp("one") / "a.html")


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    path = tmp_path_factory.mktemp("two") / "a.html"
    return show(before=make_maps(), after=make_maps(seed=5), difference=True).save(path)


def faults(page):
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page.page).response["violations"]
    return [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", ["heads", "map", "lines", "overview"])
def test_axe_finds_nothing(page, one, view, theme):
    page.open(one, view=view, theme=theme, head="all" if view == "heads" else 1, query=3)
    assert faults(page) == []


@pytest.mark.parametrize("view", ["heads", "map", "lines", "overview"])
def test_axe_finds_nothing_in_a_comparison(page, two, view):
    page.open(two, view=view, head=1)
    assert faults(page) == []


def test_axe_finds_nothing_on_an_image(page, tmp_path):
    page.open(image_maps().save(tmp_path / "a.html"), view="image")
    assert faults(page) == []


@pytest.mark.parametrize("order", ["model", "high"])
def test_axe_finds_nothing_in_menus(page, one, order):
    page.open(one, order=order)
    page.press("h")
    assert faults(page) == []
    page.press("?")
    assert faults(page) == []


@pytest.mark.parametrize("view", ["heads", "overview"])
def test_one_tab_stop_for_many_heads(page, tmp_path, view):
    path = make_maps(layers=32, heads=32, length=5).save(tmp_path / "a.html", samples=1)
    page.open(path, view=view)
    page.get(".cell").nth(1023).wait_for(state="attached")
    stops = page.get("button, select, input, summary, [tabindex='0']").evaluate_all(
        "all => all.filter(n => n.tabIndex >= 0 && n.checkVisibility() && !n.disabled).length"
    )
    assert stops < 45


def test_arrow_keys_move_among_the_heads(page, one):
    page.open(one)
    first = page.get(".layers button[tabindex='0']")
    assert first.count() == 1
    first.focus()
    labels, focused = [], "(n => n.textContent || n.ariaLabel)(document.activeElement)"
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "End", "Home"):
        page.page.keyboard.press(key)
        labels.append(page.page.evaluate(focused))
    assert labels[0].startswith("head 0")
    assert labels[1].startswith("head 1")
    assert labels[3].startswith("head 2")
    assert labels[4] == "layers.0.self_attn"
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("Enter")
    page.get(".single canvas").wait_for()
    assert page.state("head") == "0"


@pytest.mark.parametrize(("view", "head"), [("heads", "all"), ("map", 1)])
def test_the_crosshair_moves_by_keys_on_maps(page, one, view, head):
    page.open(one, view=view, head=head)
    for key in ("Shift+ArrowRight", "Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowRight"):
        page.press(key)
    assert page.told() == ["quick  2", "the  1"]


def test_the_keys_lead_from_query_to_query_in_lines(page, one):
    page.open(one, view="lines", head=1)
    for _ in range(3):
        page.press("Shift+ArrowDown")
    page.get(".told").filter(has_text="query 2 “quick”").wait_for()


def test_the_keys_lead_from_head_to_head_in_all_layers(page, one):
    page.open(one, view="overview")
    page.press("Shift+ArrowRight")
    page.page.keyboard.press("Shift+ArrowRight")
    assert page.page.evaluate("document.activeElement.title") == "layers.0.self_attn, head 1"
