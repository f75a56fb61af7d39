"""What is printed where only ASCII can be: no error, and signs that are still read."""

import os
import subprocess
import sys

import pytest

from mha_lab.plain_text import write_plainly

ASCII = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}


def test_signs_are_written_by_others_that_are_like_them():
    write_plainly()
    shown = "0.5 ± 0.1 · 3 × 4 ≥ 7 ★ é".encode("ascii", "mha_lab.plain")
    assert shown == b"0.5 +- 0.1 - 3 x 4 >= 7 * \\u00e9"


@pytest.mark.parametrize(
    ("words", "said"), [(["list", "trainer"], "gpu"), (["report", "--help"], "mean +- standard")]
)
def test_a_command_prints_where_only_ascii_can_be_written(words: list[str], said: str):
    done = subprocess.run(
        [sys.executable, "-m", "mha_lab", *words], env=os.environ | ASCII, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert said in done.stdout.decode("ascii")
