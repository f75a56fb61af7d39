"""Every command that a page shows is run, in the page's order, read from the page itself."""

import json
from pathlib import Path

import pytest
from page_commands import PAGES, Command, commands_of, made_small

from mha_lab import cli

WITH_COMMANDS = [page for page in PAGES if commands_of(page)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with what pages take for granted: a run, a multirun, a person's data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MHA_LAB_CACHE", str(tmp_path / "cache"))
    rows = [{"source": f"{i} {i % 7}", "target": f"{i % 7} {i}"} for i in range(53)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    for name in ("pairs", "train", "val", "validation"):
        (tmp_path / f"{name}.jsonl").write_text(lines)
    (tmp_path / "test.csv").write_text("source,target\n1 2,2 1\n3 4,4 3\n")
    (tmp_path / "sequences.txt").write_text("3 1 2\n7 5\n")
    run("train", "+experiment=copy", "hydra.run.dir=outputs/copy/FOLDER")
    run("train", "+experiment=sort", "hydra.run.dir=outputs/sort/FOLDER")
    run("train", "+experiment=copy", "hydra.run.dir=FOLDER")
    return tmp_path


def run(*words: str) -> None:
    assert cli.run(made_small(list(words))) == 0, words


def existing(word: str) -> str:
    """A folder that bears the time of its run: the newest of its kind."""
    name, sign, path = word.rpartition("=")
    if "outputs/multirun/20" not in path or Path(path).exists():
        return word
    return name + sign + str(max(Path("outputs/multirun").iterdir()))


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(
    page: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    for command in commands_of(page):
        if command.why_not:
            continue
        if command.is_step:
            monkeypatch.chdir(command.text.removeprefix("cd "))
            monkeypatch.syspath_prepend(Path.cwd())
            continue
        code = cli.run([existing(word) for word in made_small(command.words)])
        shown = capsys.readouterr()
        assert code == 0, f"{command}: {command.text}\n{shown.err}"


def test_the_pages_are_read():
    """The collector sees code blocks, text between backticks, and lines that go on."""
    found = [command for page in PAGES for command in commands_of(page)]
    assert len(found) > 40
    texts = [command.text for command in found]
    assert any("train +experiment=copy" in text for text in texts)
    assert any(text.count("optimizer.lr") and "choice" not in text for text in texts)


def test_a_command_is_made_small_and_stays_itself():
    words = Command(Path("x.md"), 1, "python -m mha_lab train -m seed=0,1,2 task=sort  # so").words
    assert words == ["train", "-m", "seed=0,1,2", "task=sort"]
    assert made_small(words)[:4] == ["train", "-m", "seed=0,1", "task=sort"]
    assert "trainer.max_steps=2" in made_small(words)
