"""A YAML file that would fill the memory is refused before it is unfolded."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mha_lab.config.plain_yaml import check_size

Lab = Callable[..., tuple[int, str, str]]
LINES = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
BOMB = "\n".join(["a0: &a0 [x, x]", *LINES])


@pytest.mark.parametrize(
    "text", ["a: 1", "a: &x {b: 1}\nc: *x", "a: &x 1\nb: [*x, *x]", "", "a: &x []\nb: [*x]"]
)
def test_what_is_small_is_fine(text: str):
    check_size(text)


@pytest.mark.parametrize(
    "text", [BOMB, "a: &a [*a]", "a: &a {b: {c: *a}}", "[" + "1," * 100_001 + "]"]
)
def test_what_is_large_or_endless_is_refused(text: str):
    with pytest.raises(ValueError, match="holds"):
        check_size(text)


@pytest.mark.parametrize(
    "words",
    [
        ("train", "resume={folder}"),
        ("evaluate", "run={folder}"),
        ("predict", "run={folder}", "1 2"),
        ("report", "{folder}"),
        ("sweep", "task=copy", "sweep={folder}/config.yaml"),
    ],
)
def test_no_command_unfolds_it(words: tuple[str, ...], lab: Lab, tmp_path: Path):
    (tmp_path / "config.yaml").write_text(BOMB)
    (tmp_path / "summary.json").write_text('{"status": "finished"}')
    code, _, err = lab(*(word.format(folder=tmp_path) for word in words))
    assert code == 2
    assert "100,000 values" in err
