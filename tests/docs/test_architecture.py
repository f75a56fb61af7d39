"""docs/architecture.md names files and folders that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PLACES = ("", "mha_lab", "mha_lab/attention", "mha_lab/attention/multihead")
NAMED = sorted(set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py|(?:[a-z_]+/)+)`", TEXT)))


@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_is_there(name: str) -> None:
    made_by_a_run = {"checkpoints/", "static/"}
    folders = [ROOT / place for place in PLACES] + [ROOT / "mha_lab" / "tasks"]
    assert name in made_by_a_run or any((folder / name).exists() for folder in folders)
