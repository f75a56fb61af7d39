"""What is said before the first step: which run, its own position, what compiling costs."""

import json
from pathlib import Path

import pytest
import torch
from small_runs import TINY

from mha_lab import cli, config
from mha_lab.build import build

SHORT = [word for word in TINY if "progress" not in word] + ["trainer.max_steps=2"]


@pytest.mark.parametrize(
    ("words", "names", "own"),
    [
        (["attention=retention", "position=none"], "retention · none, and of its own: decay", True),
        (
            ["attention/weighting=stick_breaking"],
            "composed (stick_breaking) · learned, and of its own: the",
            True,
        ),
        (["attention=custom"], "custom · learned · decoder", False),
    ],
)
def test_what_the_attention_tells_order_by_is_told(lab, tmp_path: Path, words, names, own):
    code, out, err = lab("train", "model=decoder", *words, *SHORT, f"hydra.run.dir={tmp_path}/run")
    assert code == 0, err
    assert out.startswith(f"copy · {names}")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert ("position_of_attention" in summary) == own


def test_a_variant_of_ones_own_says_it_in_its_yaml(
    lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """By a comment, as its cost: list, the opening line and the summary show it."""
    monkeypatch.chdir(tmp_path)
    assert lab("new", "attention", "turned", "folder=.")[0] == 0
    file = tmp_path / "configs" / "attention" / "turned.yaml"
    file.write_text("# Mine\n# Position: rotary\n" + file.read_text().split("\n", 1)[1])
    monkeypatch.syspath_prepend(tmp_path)
    more = ("--config-dir", "configs")
    assert "Mine; position of its own: rotary" in lab("list", "attention", *more)[1]
    words = ("attention=turned", "position=none", *SHORT, "hydra.run.dir=run")
    code, out, err = lab("train", *more, *words)
    assert code == 0, err
    assert "turned · none, and of its own: rotary" in out
    assert json.loads(Path("run/summary.json").read_text())["position_of_attention"] == "rotary"


@pytest.mark.parametrize("name", config.options("attention"))
def test_what_knows_order_without_an_encoding_says_how(name: str, tmp_path: Path):
    """The comment and the module say the same."""
    made = build(config.compose([f"attention={name}"], run_dir=tmp_path), "attention")(24, 4)
    says = name in config.own_positions("attention")
    assert says == bool(getattr(made, "knows_order", False))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[torch.nn.Module]:
    """The modules that were to be compiled."""
    asked: list[torch.nn.Module] = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda module: asked.append(module))
    return asked


def test_what_compiling_costs_on_a_cpu_is_said_before_training(lab, tmp_path: Path, compiled):
    words = ("trainer=cpu", "compile=true", *SHORT, f"hydra.run.dir={tmp_path}/run")
    code, _, err = lab("train", *words)
    assert code == 0, err
    assert len(compiled) == 1
    (line,) = err.splitlines()
    assert line.startswith("mha_lab: compile=true on a CPU: torch compiles before the first step")
    assert "compile=false" in line
    # One look at a sequence is not worth it.
    assert lab("predict", f"run={tmp_path}/run", "1 2")[0] == 0
    assert lab("evaluate", f"run={tmp_path}/run", "data.test_size=7")[0] == 0
    assert len(compiled) == 1


def test_nothing_is_said_of_compiling_where_nothing_is_compiled(lab, tmp_path: Path, compiled):
    code, _, err = lab("train", *SHORT, f"hydra.run.dir={tmp_path}/run")
    assert (code, err, compiled) == (0, "", [])
    assert cli.run(["list", "model"]) == 0
