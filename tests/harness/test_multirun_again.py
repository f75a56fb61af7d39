"""A multirun that was broken off: what is printed goes on with it, and ends as an unbroken one."""

import csv
import json
import shlex
from pathlib import Path

import pytest
from small_runs import TINY

import mha_lab.run

MANY = ["train", "-m", *TINY, "task=copy", "trainer.max_steps=5", "seed=3,5,7"]
_OF_THE_CLOCK = ("wall_seconds", "train_seconds")


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "summary.csv").open(newline="") as stream:
        found = list(csv.DictReader(stream))
    return [{k: v for k, v in row.items() if k not in _OF_THE_CLOCK} for row in found]


def test_what_an_interrupted_multirun_prints_goes_on_with_it(
    lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert lab(*MANY, "hydra.sweep.dir=unbroken")[0] == 0
    train, calls = mha_lab.run.train, []

    def stopped_in_the_second(cfg, **how):
        calls.append((cfg.seed, how["resume"]))
        summary = train(cfg, **how)
        if len(calls) < 2:
            return summary
        summary |= {"status": "interrupted", "exit_code": 143}
        (Path(cfg.run_dir) / "summary.json").write_text(json.dumps(summary))
        return summary

    monkeypatch.setattr(mha_lab.run, "train", stopped_in_the_second)
    code, out, err = lab(*MANY, "hydra.sweep.dir=broken off")
    assert code == 143
    assert "interrupted: 1 of 3 runs are done; go on with:" in out
    assert out.splitlines()[-1] == "broken off"
    assert err == ""
    command = shlex.split(out.splitlines()[-2])
    assert command[:3] == ["python", "-m", "mha_lab"]
    monkeypatch.setattr(
        mha_lab.run,
        "train",
        lambda cfg, **how: calls.append((cfg.seed, how["resume"])) or train(cfg, **how),
    )
    first = Path("broken off/0_seed3/summary.json").stat().st_mtime_ns
    code, out, _ = lab(*command[3:])
    assert code == 0
    assert calls == [(3, False), (5, False), (5, True), (7, False)]
    assert Path("broken off/0_seed3/summary.json").stat().st_mtime_ns == first
    assert rows(Path("broken off")) == rows(Path("unbroken"))


@pytest.mark.parametrize("words", [["seed=3,9,7"], ["seed=3"], ["seed=3,5,7", "optimizer.lr=1e-5"]])
def test_another_multirun_is_not_mixed_into_a_folder(lab, tmp_path: Path, words: list[str]):
    folder = tmp_path / "runs" / "0_seed3" / ".hydra"
    folder.mkdir(parents=True)
    (folder / "hydra.yaml").write_text("hydra: {job: {num: 1}}")
    (folder / "overrides.yaml").write_text(json.dumps([*TINY, "task=copy", "seed=5"]))
    code, _, err = lab(
        "train", "-m", *TINY, "task=copy", *words, f"hydra.sweep.dir={tmp_path}/runs"
    )
    assert code == 2
    assert "already holds runs of another multirun (0_seed3)" in err
    assert not (tmp_path / "runs" / "multirun.yaml").exists()
