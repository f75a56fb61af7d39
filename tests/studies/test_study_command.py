"""`study NAME`: runs, goes on, keeps forms apart, and says what it found."""

import csv
import json
from pathlib import Path

import pytest
from filelock import FileLock

from mha_lab import cli, run
from mha_lab.reporting.finding import find_runs
from tests.studies.conftest import write_study

QUICK = Path("outputs/studies/tiny-quick")


def test_quick_form_from_first_run_to_finding(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["study", "tiny", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "partly" in printed
    assert printed.splitlines()[-1] == str(QUICK / "report")
    names = {file.name for file in (QUICK / "report").iterdir()}
    assert names == {"finding.md", "finding.json", "table.md", "table.csv", "runs.csv",
                     "figure.png", "report.json"}  # fmt: skip
    found = json.loads((QUICK / "report/finding.json").read_text())
    assert [claim["holds"] for claim in found["claims"]] == [True, False]
    assert (found["arms"], found["seeds"], found["verdict"]) == (2, 1, "partly")
    assert "4 ± 0" not in found["claims"][0]["ours"], "one seed has no deviation"
    with (QUICK / "report/table.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    steps = [row for row in rows if row["measure"] == "steps"]
    assert [(row["layers"], row["position"], float(row["mean"])) for row in steps] == [
        ("1", "none", 4.0),
        ("2", "none", 4.0),
    ]
    assert {row["lengths"] for row in rows} == {"", "1-3", "4-5"}
    assert len(find_runs([str(QUICK)]).folders) == 2, "the runs are runs like any"
    assert not (tiny / "report").exists(), "a quick form leaves the full report alone"


def test_it_goes_on_where_it_stopped(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained, train = [], run.train

    def watched(cfg, *, resume):
        trained.append((Path(cfg.run_dir).name, resume))
        return train(cfg, resume=resume)

    monkeypatch.setattr(run, "train", watched)
    one, two = "layers-1_position-none_seed0", "layers-2_position-none_seed0"
    assert cli.run(["study", "tiny", "--quick"]) == 0
    assert trained == [(one, False), (two, False)]
    trained.clear()
    assert cli.run(["study", "tiny", "--quick"]) == 0
    assert trained == []

    # An interrupted run has a checkpoint and no summary; one that is only to be measured has both.
    (QUICK / one / "summary.json").unlink()
    (tiny / "measure.py").write_text(
        "def measure(run):\n    return [{'where': 'here', 'files': len(list(run.iterdir()))}]\n"
    )
    write_study(tiny, show=["files", "steps"])
    assert cli.run(["study", "tiny", "--quick"]) == 0
    assert trained == [(one, True)]
    assert "| files here |" in (QUICK / "report/table.md").read_text()


def test_a_run_of_other_settings_is_not_taken_for_this_one(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["study", "tiny", "--quick"]) == 0
    write_study(tiny, arms={"layers": {1: "model.num_layers=1 model.dropout=0.1"},
                            "position": {"none": "position=none"}},
                claims=[], figure=None)  # fmt: skip
    capsys.readouterr()
    assert cli.run(["study", "tiny", "--quick"]) == 2
    told = capsys.readouterr().err
    assert "was trained with other settings (model.dropout=0.1)" in told

    # An override makes it another study, with folders of its own.
    assert cli.run(["study", "tiny", "--quick", "model.dropout=0.2"]) == 0
    (other,) = Path("outputs/studies").glob("tiny-quick-changed-*")
    assert (other / "report/finding.json").is_file()


def test_a_run_of_a_recipe_that_changed_is_not_taken_for_this_one(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["study", "tiny", "--quick"]) == 0
    config = next(QUICK.glob("layers-2*")) / "config.yaml"
    text = config.read_text()
    assert "dropout: 0.0" in text
    config.write_text(text.replace("dropout: 0.0", "dropout: 0.3", 1))
    capsys.readouterr()
    assert cli.run(["study", "tiny", "--quick"]) == 2
    assert "was trained with other settings (model.dropout)" in capsys.readouterr().err


def test_the_full_form_writes_beside_the_study_and_the_list_knows(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_study(tiny, arms={"layers": {1: "model.num_layers=1"}}, lengths=[], figure=None,
                quick={}, seeds=1, show=["steps"],
                claims=[{"says": "done", "measure": "steps", "of": {"layers": 1},
                         "at_most": 4}])  # fmt: skip
    cli.run(["study", "--list"])
    assert "not run" in capsys.readouterr().out
    assert cli.run(["study", "tiny"]) == 0
    assert (tiny / "report/finding.md").read_text().startswith("# A tiny study: reproduced\n")
    capsys.readouterr()
    cli.run(["study", "--list"])
    line = next(x for x in capsys.readouterr().out.splitlines() if "A tiny study" in x)
    assert line.split()[:2] == ["tiny", "reproduced"]
    write_study(tiny, arms={"layers": {1: "model.num_layers=1", 2: "model.num_layers=2"}},
                lengths=[], figure=None, quick={}, seeds=1, show=["steps"], claims=[])  # fmt: skip
    cli.run(["study", "--list"])
    assert "reproduced, then changed" in capsys.readouterr().out


def test_a_run_that_fails_ends_no_other(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "def measure(run):\n    if 'layers-1' in run.name:\n        raise ValueError('no')\n"
    (tiny / "measure.py").write_text(code + "    return []\n")
    assert cli.run(["study", "tiny", "--quick"]) == 1
    assert "1 of 2 runs are not done: ValueError: no; the same command" in capsys.readouterr().out
    assert not (QUICK / "report").exists()

    (tiny / "measure.py").write_text("def measure(run):\n    return []\n")
    with FileLock(QUICK / "layers-1_position-none_seed0/.study.lock"):
        assert cli.run(["study", "tiny", "--quick"]) == 1, "another process is at it"
    assert cli.run(["study", "tiny", "--quick"]) == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "study needs the name of one study"),
        (["tiny", "tiny"], "study needs the name of one study"),
        (["tinny"], "there is no study 'tinny'; did you mean 'tiny'? (there are: "),
        (["tiny", "--fast"], "unknown option '--fast' (there are: --quick, --list)"),
        (["tiny", "model.embed_din=8"], "study tiny, layers=1 position=none: unknown key"),
        (["tiny", "hydra/launcher=jobli"], "hydra/launcher"),
        (["--list", "tiny"], "study --list takes nothing else"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    tiny: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert cli.run(["study", *words]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    assert not Path("outputs").exists() or not list(Path("outputs").rglob("summary.json"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seeds": 0}, "study tiny.seeds must be a whole number of at least 1, got 0"),
        ({"sedes": 3}, "unknown key 'study tiny.sedes'; did you mean 'seeds'?"),
        ({"arms": {"layers": {"a/b": "seed=1"}}}, "'a/b' names a folder"),
        ({"arms": {"layers": {}}}, "arms.layers must name levels"),
        ({"arms": {}}, "arms must name axes"),
        ({"lengths": ["3"]}, "lengths takes ranges such as 11-20, got '3'"),
        ({"quick": {"only": {"layers": [3]}}}, "quick.only names layers=3"),
        ({"figure": {"kind": "pie", "measure": "a", "x": "b"}}, "one of lines, points, heatmap"),
        ({"claims": [{"says": "a", "measure": "b"}]}, "claims[0] must say higher: and lower:"),
        (
            {"claims": [{"says": "a", "measure": "b", "of": {"layers": 9}, "at_most": 1}]},
            "claims[0] names layers=9",
        ),
        ({"claims": [{"measure": "b"}]}, "claims[0] must say says:"),
        ({"settings": "attention._target_=os.system"}, "running what a file names"),
        ({"settings": ["attention={_target_: os.system}"]}, "running what a file names"),
        ({"settings": "seed"}, "cannot read 'seed'"),
    ],
)
def test_a_study_that_contradicts_itself_is_refused(
    tiny: Path, capsys: pytest.CaptureFixture[str], change: dict[str, object], sentence: str
) -> None:
    write_study(tiny, **change)
    assert cli.run(["study", "tiny"]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
