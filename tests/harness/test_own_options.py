"""Options of one's own: started by ``new``, found by ``--config-dir`` in every command."""

import subprocess
import sys
from pathlib import Path

import pytest
from small_runs import TINY

from mha_lab import cli, config
from mha_lab.commands.new import KINDS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which one of each kind is started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MHA_LAB_CACHE", str(tmp_path / "cache"))
    for kind in KINDS:
        assert cli.run(["new", kind, f"own_{kind}", "folder=."]) == 0
        monkeypatch.delitem(sys.modules, f"own_{kind}", raising=False)
    return tmp_path


def test_what_is_started_passes_its_checks(folder: Path, capsys: pytest.CaptureFixture[str]):
    for parts in (False, True):
        words = [f"{k.group}=own_{name}" for name, k in KINDS.items() if ("/" in k.group) == parts]
        assert len(words) == (3 if parts else 4)
        assert cli.run(["check", "--config-dir", "configs", *words]) == 0, capsys.readouterr().out
        out = capsys.readouterr().out
        assert out.count("all checks passed") == (1 if parts else 4), "parts are checked together"
        assert all(word in out for word in words)


def test_what_is_started_is_lint_clean(folder: Path):
    ruff = Path(sys.executable).with_name("ruff")
    files = [f"own_{kind}.py" for kind in KINDS]
    sorting = "lint.isort.known-first-party=['mha_lab']"  # as in the repository
    settings = ["--config", ROOT / "pyproject.toml", "--config", sorting]
    for words in (["check"], ["format", "--check"]):
        command = [ruff, *words, *settings, *files]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_what_is_started_is_listed_among_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    capsys.readouterr()
    assert cli.run(["list", "attention", "--config-dir=configs"]) == 0
    out = capsys.readouterr().out
    assert "own_attention" in out
    assert "Attends by the angle between query and key" in out
    assert "custom" in out
    assert cli.run(["list", "attention"]) == 0
    assert "own_attention" not in capsys.readouterr().out, "the folder counts for one command"


def test_what_is_started_is_trained_and_reported(folder: Path, capsys: pytest.CaptureFixture[str]):
    chosen = ["attention=own_attention", "model=own_model", "task=own_task", "task.vocab_size=7"]
    small = [*TINY, "trainer.max_steps=2", "hydra.run.dir=run"]
    assert cli.run(["train", *small, "--config-dir", "configs", *chosen]) == 0
    again = ["resume=run", "trust=own_attention,own_model,own_task", "trainer.max_steps=3"]
    assert cli.run(["train", "--config-dir", "configs", *again]) == 0
    assert cli.run(["train", *again, "--cfg", "job"]) == 2
    assert "leave out --cfg" in capsys.readouterr().err
    assert cli.run(["report", "run", "table=markdown"]) == 0
    assert "own_attention" in capsys.readouterr().out


def test_parts_that_are_started_are_trained(folder: Path, capsys: pytest.CaptureFixture[str]):
    parts = [f"{kind.group}=own_{name}" for name, kind in KINDS.items() if "/" in kind.group]
    small = [*TINY, "trainer.max_steps=2", "model=decoder", "hydra.run.dir=run"]
    settings = ["attention.pattern.near=3", "attention.weighting.power=1.5"]
    words = ["train", *small, "--config-dir", "configs", *parts, *settings]
    assert cli.run(words) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert cli.run(["list", "attention/pattern", "--config-dir=configs"]) == 0
    assert "own_pattern" in capsys.readouterr().out


@pytest.mark.parametrize("kind", KINDS)
def test_the_commands_that_are_printed_work(
    kind: str, folder: Path, capsys: pytest.CaptureFixture[str]
):
    capsys.readouterr()
    assert cli.run(["new", kind, f"next_{kind}", "folder=."]) == 0
    printed = [line.split()[3:] for line in capsys.readouterr().out.splitlines() if "-m" in line]
    check, train = printed
    assert cli.run(check) == 0
    small = [word for word in TINY if not word.startswith("task=")]
    assert cli.run([*train, *small, "trainer.max_steps=2", "hydra.run.dir=run"]) == 0


def test_a_part_is_started_by_the_name_of_its_group_too(folder: Path):
    assert cli.run(["new", "attention/weighting", "again", "folder=."]) == 0
    assert (folder / "configs/attention/weighting/again.yaml").is_file()


def test_an_encoding_of_ones_own_reaches_attention(folder: Path):
    with config.with_folder(folder / "configs"):
        cfg = config.compose(["position=own_position", "position.first_rate=0.5"], run_dir="RUN")
    assert cfg.position._target_ == "own_position.OwnPositionPositions"
    assert cfg.position.first_rate == 0.5
    assert cfg.choices.position == "own_position"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["new"], "a kind"),
        (["new", "atention", "x"], "did you mean 'attention'"),
        (["new", "attention", "my-own", "folder=."], "cannot be a name"),
        (["new", "attention", "class", "folder=."], "cannot be a name"),
        (["new", "attention", "own_attention", "folder=."], "exists already"),
        (["list", "--config-dir", "nowhere"], "no such folder"),
        (["list", "--config-dir"], "needs a folder"),
        (["train", "--config-dir", "taken"], "attention/weighting=softmax is an option of this"),
    ],
)
def test_mistakes_are_one_sentence(
    folder: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    taken = folder / "taken" / "attention" / "weighting" / "softmax.yaml"
    taken.parent.mkdir(parents=True)
    taken.write_text("# Mine\n_target_: own_weighting.OwnWeightingWeighting\n_partial_: true\n")
    capsys.readouterr()
    assert cli.run(words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


WRONG = '''
"""Options with a fault each."""

import torch
from torch import Tensor, nn


class Broken(nn.Module):
    """Cannot be made."""

    def __init__(self) -> None:
        raise ZeroDivisionError("by hand")


class Raising(nn.Module):
    """Cannot be called."""

    def forward(self, scores: Tensor, allowed: Tensor) -> Tensor:
        raise KeyError("nothing")


class Shorter(nn.Module):
    """Loses a key."""

    def forward(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return scores.softmax(-1)[..., 1:]


class Alone(nn.Module):
    """Returns no pair."""

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()

    def forward(self, query: Tensor, key: Tensor, value: Tensor, **masks: object) -> Tensor:
        return query


class Fewer(Alone):
    """Loses a query."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, **masks: object):
        return query[:, 1:], None
'''


@pytest.mark.parametrize(
    ("group", "content", "said"),
    [
        ("attention/weighting", "_target_: wrong.Broken\n_partial_: true", "ZeroDivisionError: by"),
        ("attention/weighting", "_target_: wrong.Raising", "KeyError: 'nothing' in wrong.py, line"),
        ("attention/weighting", "_target_: wrong.Shorter", "check attention/weighting=faulty"),
        ("attention/weighting", "power: 3", "must be a node with a _target_"),
        ("attention/weighting", "_target_: [wrong", "faulty.yaml' is no YAML: expected"),
        (
            "attention",
            "_target_: wrong.Alone\n_partial_: true",
            "must return an output and weights",
        ),
        ("attention", "_target_: wrong.Fewer\n_partial_: true", "must have the shape of the query"),
    ],
)
def test_a_faulty_option_is_told_before_training(
    group: str,
    content: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wrong", raising=False)
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "configs" / group).mkdir(parents=True)
    (tmp_path / "configs" / group / "faulty.yaml").write_text(f"# Faulty\n{content}\n")
    words = [*TINY, "trainer.max_steps=2", "hydra.run.dir=run", f"{group}=faulty"]
    assert cli.run(["train", "--config-dir", "configs", *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.slow
def test_a_sweep_over_an_option_of_ones_own(folder: Path, capsys: pytest.CaptureFixture[str]):
    small = [*TINY, "trainer.max_steps=5", "model=decoder", "sweep=grid"]
    space = ["attention=custom,own_attention", "sweep.space.optimizer.lr=null"]
    space += ["sweep.space.model.embed_dim=null", "sweep.folder=found"]
    assert cli.run(["sweep", "--config-dir", "configs", *small, *space]) == 0
    assert "own_attention" in capsys.readouterr().out
