"""The reference page's five examples print what their README shows."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch

from mha_lab import MultiheadAttention

FOLDER = Path(__file__).parents[2] / "experiments" / "reference_page"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
SCRIPTS = sorted(FOLDER.glob("example_*.py"))


def load(script):
    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown(script):
    """What the README shows below the script's command."""
    pattern = rf"```sh\n[^\n]*{script.name}\n```\n\n```text\n(.*?)```"
    return re.search(pattern, README, re.DOTALL)[1]


def test_there_are_five():
    assert len(SCRIPTS) == 5


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_prints_what_the_readme_shows(script, capsys, tmp_path, monkeypatch):
    module = load(script)
    if hasattr(module, "FIGURE"):
        monkeypatch.setattr(module.main, "__defaults__", (tmp_path / module.FIGURE.name,))
    module.main()
    assert capsys.readouterr().out == shown(script)


def test_the_picture_is_drawn_and_shown(tmp_path, capsys):
    module = load(FOLDER / "example_5_weights.py")
    module.main(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert f"]({module.FIGURE.name})" in README
    assert module.FIGURE.is_file()


def test_without_detach_numpy_refuses():
    """The README says that ``.detach()`` is needed."""
    x = torch.randn(1, 5, 64)
    _, attn = MultiheadAttention(embed_dim=64, num_heads=2)(x, x, x)
    with pytest.raises(RuntimeError, match="requires grad"):
        attn.numpy()


PAGE = (FOLDER.parents[1] / "docs" / "reference_page.md").read_text(encoding="utf-8")
ANSWERS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def _plain_printing():
    yield
    torch.set_printoptions(profile="default")


@pytest.mark.usefixtures("_plain_printing")
@pytest.mark.parametrize(("code", "printed"), ANSWERS, ids=range(len(ANSWERS)))
def test_answer_prints_what_the_page_shows(code, printed, capsys):
    exec(code, {})
    assert capsys.readouterr().out == printed


def test_every_answer_shows_what_it_prints():
    assert len(ANSWERS) == PAGE.count("```python") == 4
