"""What a new user met in the first hour, where no other file tests it."""

from pathlib import Path

import pytest
import yaml
from small_runs import TINY

from mha_lab.commands.ending import _time_text

SHORT = [*TINY, "trainer.max_steps=2"]


@pytest.mark.parametrize(
    ("call", "training", "said"),
    [
        (7.14, 5.22, "7.1 s, of which training 5.2 s"),
        (7.1, 11.9, "7.1 s for this call; training took 11.9 s in the whole run"),
    ],
)
def test_a_resumed_run_tells_this_call_from_the_whole(call: float, training: float, said: str):
    assert _time_text({"wall_seconds": call, "train_seconds": training}) == said


@pytest.mark.parametrize(
    "words", [("report", "runs", "name=\ud83d"), ("predict", "run=x", "\udc80")]
)
def test_halves_of_characters_are_refused_by_every_command(lab, words: tuple[str, ...]):
    code, _, err = lab(*words)
    assert code == 2
    assert "half of a character" in err
    assert len(err.splitlines()) == 1


def test_an_encoder_without_positions_is_told_of_before_training(lab, tmp_path: Path):
    words = ("+experiment=sort", "model=encoder", f"hydra.run.dir={tmp_path}/run")
    code, _, err = lab("train", *words, *SHORT)
    assert code == 0, err
    assert err.startswith("mha_lab: an encoder without positions gives equal tokens of a source")
    assert "choose position=learned" in err


def test_hparams_begin_with_what_people_vary(trained: Path):
    keys = list(yaml.safe_load((trained / "hparams.yaml").read_text(encoding="utf-8")))
    assert {"choices/attention", "choices/position", "optimizer/lr", "seed"} <= set(keys)
    unvaried = ("callbacks", "logger", "trainer")
    assert not [key for key in keys if key.startswith(tuple(f"choices/{one}" for one in unvaried))]


def test_the_table_of_a_multirun_says_in_which_model_each_attention_ran(lab, tmp_path: Path):
    words = ("attention=custom,masked_decoder", f"hydra.sweep.dir={tmp_path}/runs")
    code, out, err = lab("train", "-m", *words, *SHORT)
    assert code == 0, err
    assert "not all of these ran in the same model" in err
    rows = [line.split() for line in out.splitlines() if "finished" in line and "·" not in line]
    assert [row[1:4] for row in rows] == [
        ["custom", "encoder_decoder", "finished"],
        ["masked_decoder", "decoder", "finished"],
    ]


def test_scripts_of_any_model_leave_the_tracked_pictures_alone():
    """Their numbers differ a little between machines, and so do their pictures."""
    folder = Path(__file__).parents[2] / "experiments" / "any_model"
    for script in folder.glob("*.py"):
        assert "__file__" not in script.read_text(encoding="utf-8"), script
        assert f'"{script.stem}.png"' in script.read_text(encoding="utf-8")
