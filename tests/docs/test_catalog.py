"""docs/mechanisms.md and docs/positions.md say what the configs and docstrings say."""

import re
import sys
from pathlib import Path

import pytest

from mha_lab.config import costs, options

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "group"), [("mechanisms.md", "attention"), ("positions.md", "position")]
)
def test_every_option_has_a_section_and_a_row(page: str, group: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, line in options(group).items():
        assert f"\n### {name}\n\n*{line}.*\n" in text, f"{name}: run python docs/make_catalog.py"
        assert f"\n| [{name}](#{name}) |" in text


def test_a_mechanism_of_parts_is_told_by_words_that_can_be_typed() -> None:
    text = (DOCS / "mechanisms.md").read_text(encoding="utf-8")
    words = re.findall(r"^The same as `attention=composed (.*)`: formula", text, re.MULTILINE)
    assert "attention/mixing=differential" in words
    assert "attention.kv_heads=1" in words
    assert not any("_target_" in each for each in words)


def test_every_encoding_says_what_it_costs() -> None:
    assert costs("position").keys() == options("position").keys()


@pytest.mark.slow
def test_the_pages_are_as_they_would_be_written_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    from make_catalog import pages

    for name, text in pages().items():
        written = (DOCS / name).read_text(encoding="utf-8")
        assert written == text, f"docs/{name} is stale: run python docs/make_catalog.py"
    sys.modules.pop("make_catalog")
