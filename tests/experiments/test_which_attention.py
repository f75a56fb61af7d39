"""The study runs from its one command to its report; here with runs of two steps."""

import csv
import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "experiments/which_attention/run.py"


@pytest.mark.slow
def test_it_compares_all_variants_on_both_tasks(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("which_attention", SCRIPT)
    study = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(study)
    monkeypatch.setattr(study, "REPORT", tmp_path / "report")
    monkeypatch.chdir(tmp_path)
    short = [word.replace("max_steps=1000", "max_steps=2") for word in study.SAME_FOR_ALL]
    assert short != study.SAME_FOR_ALL
    monkeypatch.setattr(study, "SAME_FOR_ALL", short)
    study.main(
        [
            "trainer.val_check_interval=1",
            "sweep.seeds=1",
            "data.validation_size=11",
            "data.test_size=13",
        ]
    )
    with (tmp_path / "report/report.csv").open(newline="") as file:
        groups = list(csv.DictReader(file))
    found = {(row["task"], row["attention"], float(row["optimizer.lr"])) for row in groups}
    assert found == {
        (task, attention, rate)
        for task in ("copy", "sort")
        for attention in ("builtin", "custom", "masked_decoder", "none")
        for rate in (0.003, 0.005)
    }
    assert (tmp_path / "report/index.html").is_file()
