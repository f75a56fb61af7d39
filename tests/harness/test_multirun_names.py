"""The folders of a multirun: named by what differs, read whatever they are called."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from small_runs import TINY

from mha_lab import cli
from mha_lab.commands.multirun_names import run_dir_words, subdir_words
from mha_lab.config import chosen_parts, compose, load_run
from mha_lab.run.opening import names_of_run
from mha_lab.training.run_folder import read_summary

GROUPS = ["attention", "position", "task"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["attention=builtin,custom", "seed=0,1"],
         "${hydra:job.num}_${hydra:runtime.choices.attention}_seed${seed}"),
        (["+experiment=copy", "optimizer.lr=choice(1e-3,1e-2)"],
         "${hydra:job.num}_lr${optimizer.lr}"),
        (["attention/weighting=softmax,sigmoid"],
         "${hydra:job.num}_${hydra:runtime.choices.attention/weighting}"),
        (["data.batch_size=range(3,5)"], "${hydra:job.num}_batch_size${data.batch_size}"),
    ],
)  # fmt: skip
def test_what_varies_names_the_folders(words: list[str], name: str):
    assert subdir_words(words, GROUPS) == [f"hydra.sweep.subdir='{name}'"]


@pytest.mark.parametrize(
    "words",
    [
        ["seed=3"],  # nothing varies
        ["seed=0,1", "hydra.sweep.subdir=mine"],  # named already
        ["task.train=a/b.csv,c/d.csv"],  # would be folders in folders
        ["optimizer.betas=[0.8,0.9],[0.9,0.98]"],
        ["seed=("],  # Hydra will say what is wrong
    ],
)
def test_names_are_left_to_hydra(words: list[str]):
    assert subdir_words(words, GROUPS) == []


@pytest.mark.parametrize("subdir", [None, "s${seed}", "a/${seed}"])
def test_the_table_is_of_the_runs_whatever_they_are_called(
    tmp_path: Path, subdir: str | None, capsys: pytest.CaptureFixture[str]
):
    words = [] if subdir is None else [f"hydra.sweep.subdir={subdir}"]
    folder = tmp_path / "runs"
    many = [
        "train",
        *TINY,
        "trainer.max_steps=2",
        "seed=7,11",
        "-m",
        f"hydra.sweep.dir={folder}",
        *words,
    ]
    assert cli.run(many) == 0
    names = {None: ["0_seed7", "1_seed11"], "s${seed}": ["s7", "s11"]}.get(subdir, ["a/7", "a/11"])
    rows = list(csv.DictReader((folder / "summary.csv").open()))
    assert [row["run"] for row in rows] == names
    assert [row["seed"] for row in rows] == ["7", "11"]
    assert all((folder / name / "summary.json").is_file() for name in names)
    assert "sequence" in capsys.readouterr().out


def test_a_part_of_the_attention_names_the_folder_of_a_single_run():
    usual = "outputs/${hydra:runtime.choices.attention}_seed${seed}"

    assert run_dir_words(["+experiment=sort", "attention/weighting=entmax15"], usual) == [
        "hydra.run.dir='outputs/${hydra:runtime.choices.attention}"
        "_${hydra:runtime.choices.attention/weighting}_seed${seed}'"
    ]
    assert run_dir_words(["attention/weighting=entmax15", "hydra.run.dir=mine"], usual) == []
    assert run_dir_words(["attention=entmax"], usual) == []


def test_a_model_without_attention_is_not_named_by_one(
    lab: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    tiny = [word for word in TINY if not word.startswith("model.num_heads")]
    assert lab("train", *tiny, "trainer.max_steps=2", "task=copy", "model=recurrent")[0] == 0
    [run] = (tmp_path / "outputs" / "copy").iterdir()
    assert run.name.startswith("recurrent_seed0_")


def test_attention_chosen_for_a_model_without_is_told(
    lab: Callable[..., tuple[int, str, str]], tmp_path: Path
):
    tiny = [word for word in TINY if not word.startswith("model.num_heads")]
    words = ["trainer.max_steps=2", "attention=linear", "position=rotary"]
    folder = f"hydra.run.dir={tmp_path / 'run'}"
    code, _, said = lab("train", *tiny, *words, "model=recurrent", folder)

    assert code == 0
    told = "model=recurrent has no attention: attention=linear and position=rotary will not count"
    assert told in said


def test_a_run_says_which_parts_its_attention_has(
    lab: Callable[..., tuple[int, str, str]], tmp_path: Path
):
    words = ["trainer.max_steps=2", "attention/weighting=entmax15", "attention/pattern=full"]
    code, _, _ = lab("train", *TINY, *words, f"hydra.run.dir={tmp_path / 'run'}")
    run = tmp_path / "run"

    assert code == 0
    assert names_of_run(load_run(run))[1] == "composed (entmax15)"
    assert read_summary(run)["attention_parts"] == "entmax15"


def test_a_run_says_which_class_stands_in_for_that_of_its_option():
    words = ["attention=custom", "attention._target_=torch.nn.MultiheadAttention"]

    assert chosen_parts(compose(words, run_dir="RUN")) == ["MultiheadAttention"]
    assert chosen_parts(compose(["attention=custom"], run_dir="RUN")) == []
    assert chosen_parts(compose(["attention=entmax"], run_dir="RUN")) == []
    assert chosen_parts(compose(["attention=masked_decoder"], run_dir="RUN")) == []
