"""docs/coming_from_torch.md is true: its code runs from top to bottom and prints what it says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "coming_from_torch.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_block_prints_what_stands_below_it():
    blocks = re.findall(r"```(python|text)\n(.*?)```", TEXT, re.DOTALL)
    assert [kind for kind, _ in blocks].count("text") >= 6
    namespace, printed = {}, ""
    for kind, block in blocks:
        if kind == "text":
            assert printed == block
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(block, namespace)
        printed = out.getvalue()


def test_every_issue_named_is_one_that_a_test_names():
    tests = (ROOT / "tests" / "attention" / "test_reported_faults.py").read_text(encoding="utf-8")
    table = TEXT.split("## Faults that disappear")[1].split("\n## ")[0]
    rows = [row.split("|")[2] for row in table.splitlines() if row.count("|") == 4][2:]
    named = {number for row in rows for number in re.findall(r"\d+", row)}
    assert len(named) >= 25
    elsewhere = {"88810", "99304", "32590", "143107", "163640"}  # recorder; test_composition.py
    assert named - elsewhere <= set(re.findall(r"\d{5,6}", tests))
