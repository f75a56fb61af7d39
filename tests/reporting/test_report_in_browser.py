"""The page in Chromium: nothing is loaded, nothing sticks out, tables scroll in their own box."""

import pytest
from synthetic_runs import write_failed, write_grid

from mha_lab.cli import run
from mha_lab.reporting.document import Document, Section, Table
from mha_lab.reporting.page import to_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    write_grid(folder, attentions=("builtin", "custom"), positions=("learned", "none"), seeds=3)
    write_failed(folder / "90", attention="a_variant_with_a_rather_long_name", reason="no " * 200)
    assert run(["report", str(folder), "by=attention,position"]) == 0
    return folder / "report" / "index.html"


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as engine:
        started = engine.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(params=[(1280, 800), (390, 844)], ids=["desktop", "phone"])
def page(request, browser, page_file):
    width, height = request.param
    opened = browser.new_page(viewport={"width": width, "height": height})
    requests, errors = [], []
    opened.on("request", lambda one: requests.append(one.url))
    opened.on("console", lambda one: errors.append(one.text))
    opened.goto(page_file.as_uri())
    yield opened
    assert [url for url in requests if not url.startswith("data:")] == [page_file.as_uri()]
    assert errors == []
    opened.close()


def test_nothing_sticks_out_of_the_page(page):
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_wide_tables_scroll_in_their_own_box(page):
    boxes = page.evaluate(
        "[...document.querySelectorAll('.scroll')].map(b => ({over: b.scrollWidth > b.clientWidth,"
        " overflow: getComputedStyle(b).overflowX}))"
    )
    assert all(box["overflow"] == "auto" for box in boxes)
    if page.viewport_size["width"] < 500:
        assert any(box["over"] for box in boxes)


def test_figures_are_drawn_at_a_readable_size(page):
    sizes = page.evaluate(
        "[...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect().width)"
    )
    assert len(sizes) >= 4
    assert min(sizes) > 300
    letters = page.evaluate(
        "Math.min(...[...document.querySelectorAll('figure svg text')]"
        ".map(t => t.getBoundingClientRect().height).filter(h => h > 0))"
    )
    assert letters > 8


def test_links_lead_to_their_sections(page):
    page.get_by_role("link", name="Learning curves").click()
    assert page.evaluate("document.querySelector(':target h2').textContent") == "Learning curves"


def test_the_list_of_all_runs_opens(page):
    details = page.locator("details", has_text="All")
    assert not details.locator("table").last.is_visible()
    details.locator("summary").last.click()
    assert details.locator("table").last.is_visible()


def test_dark_pages_have_dark_paper_and_light_ink(browser, page_file):
    def colours(scheme):
        page = browser.new_page(color_scheme=scheme)
        page.goto(page_file.as_uri())
        found = page.evaluate(
            "[getComputedStyle(document.body).backgroundColor,"
            " getComputedStyle(document.querySelector('figure svg text')).fill]"
        )
        page.close()
        return [sum(map(int, one[4:-1].split(","))) for one in found]

    paper, ink = colours("light")
    assert paper > 700 > 400 > ink
    paper, ink = colours("dark")
    assert paper < 100 < 400 < ink


def test_a_header_is_broken_into_two_lines_at_most(browser, tmp_path):
    names = ["accuracy up to 2×", "accuracy up to 13×", "steps to solve", "sequence accuracy", "n"]
    tables = [Table(["attention", *names], [["custom", *"12345"]], "", numeric=5)]
    file = tmp_path / "index.html"
    file.write_text(to_page(Document("x", "", [], [Section("a", tables)], [])), encoding="utf-8")
    opened = browser.new_page(viewport={"width": 300, "height": 800})
    opened.goto(file.as_uri())
    lines = opened.evaluate(
        "[...document.querySelectorAll('th')].map(cell => { const range = document.createRange();"
        " range.selectNodeContents(cell);"
        " return new Set([...range.getClientRects()].map(one => one.top)).size; })"
    )
    opened.close()
    assert lines == [1, 2, 2, 2, 2, 1]
