"""What a report says of lengths: read from evaluations, compared, drawn."""

import json
from pathlib import Path

import pytest
from synthetic_runs import write_csv, write_evaluation, write_run

from mha_lab.commands import report
from mha_lab.reporting import drawing, length_figures
from mha_lab.reporting.comparison import Comparison
from mha_lab.reporting.grouping import group_runs
from mha_lab.reporting.measures import beyond_training, of_summary
from mha_lab.reporting.reading import read_run, read_runs
from mha_lab.reporting.sections import main_table

TESTED = {2: 1.0, 10: 0.9}
LONGER = {10: 0.8, 12: 0.6, 20: 0.2, 24: 0.1}


def test_the_latest_evaluation_of_the_same_task_counts(tmp_path):
    run = write_run(tmp_path / "0", lengths=TESTED)
    write_evaluation(run, {12: 0.5, 24: 0.1}, name="2026-01-01")
    write_evaluation(run, {10: 0.8, 12: 0.6}, name="2026-01-02", overrides=["data.test_size=9"])
    write_evaluation(run, {20: 0.2}, name="2026-01-03", overrides=["task.max_length=20"])
    write_evaluation(run, {12: 0.0}, name="2026-01-04", overrides=["task=sort"])
    write_evaluation(run, {12: 0.0}, name="2026-01-05", overrides=["task.vocab_size=3"])
    broken_off = write_evaluation(run, {12: 0.0}, name="2026-01-06")
    (broken_off / "summary.json").unlink()
    assert read_run(run).lengths == {2: 1.0} | LONGER


def test_lengths_logged_in_training_stand_at_the_middle_of_their_range(tmp_path):
    run = write_run(tmp_path / "0", lengths=TESTED)
    rows = [{"step": 1, "length/11-20/sequence_accuracy": 0.1, "length/11-20/token_accuracy": 0.9},
            {"step": 2, "length/11-20/sequence_accuracy": 0.7},
            {"step": 3}]  # fmt: skip
    write_csv(run / "metrics.csv", rows)
    assert read_run(run).lengths == {**TESTED, 15: 0.7}
    write_evaluation(run, {12: 0.5})
    assert read_run(run).lengths == {**TESTED, 12: 0.5}


def test_a_damaged_evaluation_is_told(tmp_path):
    run = write_run(tmp_path / "0")
    kept = write_evaluation(run, {12: 0.5})
    (kept / "accuracy_by_length.csv").write_text("length,sequence_accuracy\n12,much\n")
    read = read_run(run)
    assert read.status == "unreadable"
    assert "sequence_accuracy is 'much'" in read.reason


def test_means_up_to_multiples_of_the_training_length(tmp_path):
    run = write_run(tmp_path / "0", lengths=TESTED)  # lengths 1 to 10 in training
    assert beyond_training([read_run(run)]) == []
    write_evaluation(run, LONGER)
    found = beyond_training([read_run(run)])
    assert [one.name for one in found] == ["accuracy up to 2×", "accuracy up to 3×"]
    assert [one.of(read_run(run)) for one in found] == [pytest.approx(0.4), 0.1]
    assert not any(one.is_better_low for one in found)


def grid(tmp_path: Path) -> list[Path]:
    """Two tasks, two attentions, two seeds; one pair was never run, one run never evaluated."""
    folders = []
    for task, attention in (("copy", "custom"), ("copy", "linear"), ("sort", "custom")):
        for seed in (0, 1):
            name = f"{task}-{attention}-{seed}"
            folders.append(write_run(tmp_path / name, task=task, attention=attention, seed=seed))
            if name != "sort-custom-1":
                write_evaluation(folders[-1], {15: 0.5 + 0.2 * seed})
    return folders


def test_variants_are_compared_at_the_lengths_too(tmp_path, capsys):
    runs = read_runs(grid(tmp_path))
    table = main_table(Comparison(runs, ("task", "attention"), "test/sequence_accuracy", tmp_path))
    at = list(table.columns).index("accuracy up to 2×")
    assert [row[at] for row in table.rows] == [
        "0.6000 ± 0.1414", "0.6000 ± 0.1414", "0.5000 (1 of 2)",
    ]  # fmt: skip
    assert report.main([str(tmp_path)]) == 0
    page = (tmp_path / "report" / "index.html").read_text()
    assert "Highest accuracy up to 2×: 0.6000" in page
    assert "Shaded: the lengths of training." in page
    header = (tmp_path / "report" / "report.csv").read_text().splitlines()[0]
    assert "accuracy up to 2× mean" in header
    assert (tmp_path / "report" / "tasks_and_variants.png").stat().st_size > 1000


def test_the_map_of_tasks_and_variants_leaves_no_hole_unsaid(tmp_path):
    groups = group_runs(read_runs(grid(tmp_path)), ["task", "attention"])
    measures = [of_summary("test/sequence_accuracy"), *beyond_training(groups[0].complete)]
    with drawing.style():
        picture = length_figures.tasks_and_variants(groups, measures)
    assert picture is not None
    for word in ("copy", "sort", "custom", "linear", "1.00", "0.60", "accuracy up to 2×"):
        assert f">{word}<" in picture.svg
    assert picture.svg.count(">1.00<") == 3, "a number for each pair that was run, and no other"
    assert "hatched where there is none" in picture.caption
    assert "On shaded ground: lengths beyond training." in picture.caption


@pytest.mark.parametrize("by", [["attention"], ["task"]])
def test_no_map_where_one_of_the_two_is_alone(tmp_path, by):
    groups = group_runs(read_runs(grid(tmp_path)), by)
    with drawing.style():
        assert length_figures.tasks_and_variants(groups, []) is None


def test_nothing_is_shaded_where_nothing_is_beyond(tmp_path):
    runs = [write_run(tmp_path / "0")]
    with drawing.style():
        picture = length_figures.accuracy_by_length(group_runs(read_runs(runs), ["attention"]))
    assert picture is not None
    assert "Shaded" not in picture.caption


def test_summaries_without_overrides_do_not_count(tmp_path):
    run = write_run(tmp_path / "0", lengths=TESTED)
    kept = write_evaluation(run, {12: 0.5})
    (kept / "summary.json").write_text(json.dumps(["no", "summary"]))
    assert read_run(run).lengths == TESTED
