"""callbacks/length_generalization=on: accuracies beyond the training lengths, as it trains."""

import csv
from pathlib import Path

import pytest
from small_runs import TINY

from mha_lab.training.length_generalization import LengthGeneralization

ON = ("callbacks/length_generalization=on", "callbacks.length_generalization.samples=5")
RUN = ("train", "task=copy", "task.max_length=5", "task.vocab_size=5", *TINY)


def test_it_is_logged_at_every_validation(lab, tmp_path: Path) -> None:
    code, _, err = lab(*RUN, *ON, "trainer.max_steps=10", f"hydra.run.dir={tmp_path}/run")
    assert code == 0, err
    with (tmp_path / "run" / "metrics.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    for lengths in ("1-5", "6-10", "11-15"):
        key = f"length/{lengths}/token_accuracy_free"
        values = [float(row[key]) for row in rows if row.get(key)]
        assert len(values) == 2
        assert all(0 <= value <= 1 for value in values)


def test_it_does_not_change_what_is_trained(lab, tmp_path: Path) -> None:
    texts = []
    for name, words in (("with", ON), ("without", ())):
        folder = tmp_path / name
        code, _, err = lab(*RUN, *words, "trainer.max_steps=10", f"hydra.run.dir={folder}")
        assert code == 0, err
        with (folder / "metrics.csv").open(encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        texts.append([row["val/loss"] for row in rows if row.get("val/loss")])
    assert texts[0] == texts[1]
    assert len(texts[0]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["position.max_length=12"], "position.max_length=12"),
        (["callbacks.length_generalization.multiples=[3,2]"], "multiples must rise from 2 on"),
        (["callbacks.length_generalization.samples=0"], "samples"),
        (["task=unique_copy", "task.vocab_size=7"], "max_length=10 and vocab_size=7"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(lab, tmp_path: Path, words, said: str) -> None:
    run = RUN if not words[0].startswith("task=") else (RUN[0], "task.max_length=5", *TINY)
    words = [*run, *ON, *words, "trainer.max_steps=5", f"hydra.run.dir={tmp_path}/run"]
    code, _, err = lab(*words)
    assert code == 2, err
    assert said in err
    assert "Traceback" not in err


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="every_n_validations must be at least 1, got 0"):
        LengthGeneralization(every_n_validations=0)
