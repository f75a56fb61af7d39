"""A variant in the working folder: ``mha_lab`` and ``python -m mha_lab`` both find it."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("mha_lab")
VARIANT = """\
from torch.nn import MultiheadAttention


def variant(embed_dim: int, num_heads: int, *, dropout: float = 0.0) -> MultiheadAttention:
    return MultiheadAttention(embed_dim, num_heads, dropout=dropout, batch_first=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("words", [[str(SCRIPT)], [sys.executable, "-m", "mha_lab"]])
def test_a_module_in_the_working_folder_is_found(tmp_path: Path, words: list[str]):
    if not Path(words[0]).exists():
        pytest.skip("the console script is not installed beside this Python")
    (tmp_path / "mine.py").write_text(VARIANT)
    command = [*words, "check", "attention=builtin", "attention._target_=mine.variant"]
    done = subprocess.run(
        [*command, "~attention.batch_first"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "all checks passed" in done.stdout, done.stderr
