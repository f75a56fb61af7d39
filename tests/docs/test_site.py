"""The site: which files are pages, where links lead, and what the last check finds."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    for name in ("links", "pages", "tables"):  # another of that name may be a test's helper
        monkeypatch.delitem(sys.modules, name, raising=False)
    import links

    yield links
    for name in ("links", "pages"):
        sys.modules.pop(name)


def test_links_into_the_repository_lead_to_pages(links: ModuleType) -> None:
    text = (
        "[a](../experiments/any_model) [b](../mha_lab/view/codec.py#top) [c](notebooks)\n"
        "[`d`](../README.md#results) [e](https://x.org/y) [f](#g) [h](nowhere.md)\n"
        "`[i](../mha_lab)`\n\n```\n[j](../mha_lab)\n```\n[k](../tests/conftest.py)\n"
    )
    assert links.repointed(text, ROOT / "docs" / "recording.md") == (
        "[a](../experiments/any_model/README.md) [b](../mha_lab/view/index.md#top) "
        "[c](notebooks/index.md)\n"
        "[`d`](../README.md#results) [e](https://x.org/y) [f](#g) [h](nowhere.md)\n"
        "`[i](../mha_lab)`\n\n```\n[j](../mha_lab)\n```\n[k](../tests/conftest.py.md)\n"
    )


def test_what_pages_link_to_is_in_the_site(links: ModuleType) -> None:
    site = links.pages.site()
    assert {"README.md", "docs/tasks.md", "docs/notebooks/index.md"} <= site.keys()
    assert {"experiments/gallery/README.md", "experiments/gallery/gallery.png"} <= site.keys()
    assert "tests/attention/test_reported_faults.py.md" in site
    assert "```python" in site["docs/notebooks/1_a_strangers_model.md"]
    assert "::: mha_lab.attention.weighting.sink\n" in site["mha_lab/attention/weighting/index.md"]
    assert "experiments/gallery/run.py" not in site  # nobody links to it


def test_the_last_check_finds_what_leads_nowhere_and_what_is_fetched(
    links: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "index.html").write_text('<h1 id="here">A</h1><a href="..">up</a>')
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="https://fonts.example/x.css"><img src="no.png">'
        '<script src="//cdn.example/x.js"></script><a href="https://elsewhere.org">x</a>'
        '<a href="a/#here">good</a><a href="a/#there">bad</a><a href="b/">bad</a>'
        '<a href="#nothing">bad</a><a href="mailto:a@b.c">x</a>'
        "<h1>a</h1><h2>b</h2><h3>c</h3><h2>d</h2><h4>bad</h4>"
    )
    assert links.faults(tmp_path) == [
        "index.html: fetches https://fonts.example/x.css",
        "index.html: fetches //cdn.example/x.js",
        "index.html: h4 follows h2",
        "index.html: leads to a/#there, but that page has no such place",
        "index.html: leads to b/, which is not there",
        "index.html: leads to #nothing, but that page has no such place",
        "index.html: leads to no.png, which is not there",
    ]


def test_cells_of_many_letters_are_wide_and_no_empty_cell_is_a_header(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    import tables

    words = "&lt;b&gt; " * 8  # 32 letters once they are shown
    page = (
        f"<tr><th></th><th>n</th></tr><tr><td>{words}</td><td class='a'>{words * 2}</td>"
        f'<td style="text-align: right"><a href="{"x" * 90}">{words * 2}</a></td></tr>'
    )
    sys.modules.pop("tables")
    assert tables.readable(page) == page.replace("<th></th>", "<td></td>").replace(
        '<td style="text-align: right">', '<td style="text-align: right" class="long">'
    )
