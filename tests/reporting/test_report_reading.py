import json

import numpy as np
import pytest
from synthetic_runs import write_failed, write_metrics, write_run

from mha_lab.reporting import run_files
from mha_lab.reporting.reading import read_run, read_runs


def test_a_complete_run_is_read_whole(tmp_path):
    folder = write_run(
        tmp_path / "run",
        accuracy=0.97,
        steps=150,
        seed=11,
        curve=[(50, 2.0, 0.25), (100, 1.5, 0.5), (150, 0.5, 0.97)],
        lengths={2: 1.0, 3: 0.75},
    )
    run = read_run(folder)
    assert (run.status, run.reason, run.is_complete) == ("solved", "", True)
    assert run.seed == 11
    assert run.values["attention"] == "custom"
    assert run.values["optimizer.lr"] == 0.004
    assert run.text("optimizer.betas") == "[0.9, 0.98]"
    assert run.text("data.train_size") == "null"
    assert run.text("model.unknown") == "–"
    assert run.number("test/sequence_accuracy") == 0.97
    assert run.number("status") is None
    assert run.lengths == {2: 1.0, 3: 0.75}
    steps, values = run.curves["val/sequence_accuracy"]
    np.testing.assert_array_equal(steps, [50, 100, 150])
    np.testing.assert_array_equal(values, [0.25, 0.5, 0.97])
    assert set(run.curves) == {"val/sequence_accuracy", "val/loss"}


def test_paths_in_the_run_folder_are_equal_in_all_runs(tmp_path):
    runs = [read_run(write_run(tmp_path / name)) for name in ("a", "b")]
    assert {run.text("callbacks.checkpoint.dirpath") for run in runs} == {"<run>/checkpoints"}


@pytest.mark.parametrize(
    ("status", "reason"),
    [("interrupted", "stopped by hand at step 150, before its test"),
     ("unfinished", "no summary.json: still running, or ended without one "
                    "(last validation at step 150)")],
)  # fmt: skip
def test_a_run_that_did_not_end_says_why(tmp_path, status, reason):
    run = read_run(write_run(tmp_path / "run", status=status, steps=150))
    assert (run.status, run.reason, run.is_complete) == (status, reason, False)
    assert run.values["attention"] == "custom"


def test_a_job_that_failed_early_is_known_by_what_hydra_composed(tmp_path):
    run = read_run(write_failed(tmp_path / "3", attention="builtin", position="none", seed=7))
    assert run.status == "failed"
    assert run.reason == "embed_dim=63 must be divisible by num_heads=4"
    assert (run.values["attention"], run.values["position"], run.seed) == ("builtin", "none", 7)
    assert "hydra/launcher" not in run.values
    assert run.text("callbacks.checkpoint.dirpath") == "<run>/checkpoints"


def test_a_job_that_was_killed_early_is_told_too(tmp_path):
    run = read_run(write_failed(tmp_path / "3", reason=""))
    assert (run.status, run.reason) == ("unfinished", "stopped before its training began")


def test_interpolations_of_a_composed_config_are_resolved(tmp_path):
    folder = write_failed(tmp_path / "3", optimizer__decay_steps="${trainer.max_steps}")
    assert read_run(folder).values["optimizer.decay_steps"] == 2000


def test_a_summary_alone_is_known_by_its_overrides(tmp_path):
    overrides = ["+experiment=sort", "optimizer.lr=0.003", "seed=5", "model.norm={a: b}"]
    summary = {"status": "failed", "reason": "out of\n memory", "overrides": overrides}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    run = read_run(tmp_path)
    assert run.reason == "out of memory"
    assert run.values == {
        "experiment": "sort", "optimizer.lr": 0.003, "seed": 5, "model.norm": "{a: b}",
    }  # fmt: skip


def test_an_unknown_status_is_kept_as_it_is(tmp_path):
    (tmp_path / "summary.json").write_text('{"status": "pruned", "reason": "median at step 100"}')
    run = read_run(tmp_path)
    assert (run.status, run.reason, run.is_complete) == ("pruned", "median at step 100", False)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.yaml", "a: [", "config.yaml is not YAML"),
        ("config.yaml", "just words", "it holds no keys"),
        ("config.yaml", "seed: 3", "it has no 'choices'"),
        ("config.yaml", b"\xff\xfe", "config.yaml cannot be read"),
        ("summary.json", '{"status": ', "summary.json is not JSON"),
        ("summary.json", "[1, 2]", "it has no 'status'"),
        ("metrics.csv", "epoch,val/loss\n1,2\n", "metrics.csv is damaged: it has no column 'step'"),
        ("metrics.csv", "", "it has no column 'step'"),
        ("metrics.csv", "step,val/loss\n10,0.5,7\n", "line 2 has 3 fields, the header 2"),
        ("metrics.csv", "step,val/loss\n10,abc\n", "val/loss is 'abc', not a number"),
        ("metrics.csv", "step,val/loss\nnan,0.5\n", "step is 'nan', not a whole number"),
        ("metrics.csv", "step,val/loss\n1e999,0.5\n", "not a whole number"),
        ("metrics.csv", "step,val/token_accuracy\n10,7\n", "7.0, not a number from 0 to 1"),
        ("accuracy_by_length.csv", "length,sequences\n1,2\n", "no column 'sequence_accuracy'"),
        ("accuracy_by_length.csv", "length,sequence_accuracy\n1,-2\n", "not a number from 0 to 1"),
    ],
)
def test_a_damaged_file_makes_a_run_unreadable_with_the_reason(tmp_path, file, content, said):
    folder = write_run(tmp_path / "run")
    (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    run = read_run(folder)
    assert run.status == "unreadable"
    assert said in run.reason
    assert "\n" not in run.reason
    assert ("attention" in run.values) == (file != "config.yaml")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("steps", "many", "steps is 'many', not a whole number"),
        ("steps", None, "steps is None, not a whole number"),
        ("steps", -3, "steps is -3, not a whole number"),
        ("steps", 7.5, "steps is 7.5, not a whole number"),
        ("steps", 10**400, "not a whole number"),
        ("parameters", True, "parameters is True, not a whole number"),
        ("train_seconds", "6.5", "train_seconds is '6.5', not a number of seconds"),
        ("wall_seconds", float("inf"), "wall_seconds is inf, not a number of seconds"),
        ("test/loss", [0.1], "test/loss is [0.1], not a number"),
        ("test/sequence_accuracy", 7, "test/sequence_accuracy is 7, not a number from 0 to 1"),
        ("test/token_accuracy", "1.0", "test/token_accuracy is '1.0', not a number"),
        ("status", ["solved"], "status is ['solved'], not a word"),
        ("attention", 5, "attention is 5, not the name of an option"),
        ("model", {"a": 1}, "model is {'a': 1}, not the name of an option"),
    ],
)
def test_a_value_of_a_summary_that_is_of_another_kind_is_told(tmp_path, key, value, said):
    folder = write_run(tmp_path / "run")
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {key: value}))
    run = read_run(folder)
    assert run.status == "unreadable"
    assert run.reason.startswith("summary.json is damaged: ")
    assert said in run.reason


def test_a_choice_of_a_config_that_is_no_name_is_told(tmp_path):
    folder = write_run(tmp_path / "run", model=["encoder"])
    run = read_run(folder)
    assert run.reason == "config.yaml is damaged: model is ['encoder'], not the name of an option"


def test_values_that_are_no_numbers_may_be_logged(tmp_path):
    folder = write_run(tmp_path / "run")
    write_metrics(folder, [(10, "nan", 0.5), (20, "inf", 0.5)])
    _, losses = read_run(folder).curves["val/loss"]
    assert np.isnan(losses[0])
    assert np.isinf(losses[1])


def test_a_model_without_attention_has_none_also_before_its_summary(tmp_path):
    shared = {"model": "recurrent", "uses_attention": False}
    folders = [
        write_run(tmp_path / "0", seed=0, **shared),
        write_run(tmp_path / "1", seed=1, status="unfinished", **shared),
        write_run(tmp_path / "2", seed=2, model="encoder_decoder"),
        write_run(tmp_path / "3", seed=3, model="encoder_decoder", position="none"),
    ]
    runs = read_runs(folders)
    assert [run.values["attention"] for run in runs] == ["none", "none", "custom", "custom"]
    assert [run.values["position"] for run in runs] == ["none", "none", "learned", "none"]
    assert "attention._target_" not in runs[1].values
    assert "attention._target_" in runs[2].values


def test_the_files_are_those_that_training_writes():
    from mha_lab.training import run_folder

    assert run_files.SUMMARY == run_folder.SUMMARY
    assert run_files.METRICS == run_folder.METRICS
    assert run_files.LENGTHS == run_folder.LENGTHS
