import math

import numpy as np
import pytest
from synthetic_runs import write_run

from mha_lab.errors import UserError
from mha_lab.reporting.measures import (
    STEPS_TO_SOLVE,
    check_metric,
    main_measures,
    of_summary,
    write_stat,
)
from mha_lab.reporting.reading import Run, read_run
from mha_lab.reporting.statistics import Stat, by_length, describe, mean_curve


def curve(*points):
    table = np.array(points, dtype=float)
    return table[:, 0], table[:, 1]


def run(folder, **numbers):
    return Run(folder, numbers.pop("status", "solved"), summary=numbers)


def test_mean_and_sample_standard_deviation_by_hand():
    # 2, 4, 9: mean 5, squares 9 + 1 + 16 = 26, sd = sqrt(26 / 2)
    stat = describe([2.0, None, 4.0, 9.0])
    assert (stat.n, stat.mean) == (3, 5.0)
    assert stat.sd == pytest.approx(math.sqrt(13))
    assert describe([3.0]) == Stat(1, 3.0, None)
    assert describe([None]) is None


def test_a_run_that_stopped_keeps_its_last_value():
    mean = mean_curve([curve((10, 0.0), (20, 1.0)), curve((10, 0.5), (40, 0.2))])
    np.testing.assert_array_equal(mean.steps, [10, 20, 40])
    # At 20 the second is interpolated: 0.5 - 0.3 / 3 = 0.4; at 40 the first still has 1.
    np.testing.assert_allclose(mean.mean, [0.25, 0.7, 0.6])
    np.testing.assert_allclose(mean.sd, np.array([0.5, 0.6, 0.8]) / math.sqrt(2))
    assert mean.first_end == 20
    assert mean.ends == [20, 40]


def test_there_is_no_mean_before_every_run_has_a_value():
    mean = mean_curve([curve((5, 1.0), (30, 1.0)), curve((20, 3.0), (30, 3.0))])
    np.testing.assert_array_equal(mean.steps, [20, 30])
    np.testing.assert_allclose(mean.mean, [2.0, 2.0])


def test_a_single_curve_has_no_deviation():
    assert mean_curve([curve((5, 1.0), (10, 2.0))]).sd is None
    assert mean_curve([]) is None


def test_accuracy_by_length_counts_each_length_by_itself(tmp_path):
    runs = [Run(tmp_path, "solved", lengths=lengths) for lengths in ({2: 1.0, 3: 0.5}, {3: 1.0})]
    assert by_length(runs)[2] == Stat(1, 1.0, None)
    assert by_length(runs)[3].mean == 0.75


@pytest.mark.parametrize(
    ("stat", "style", "written"),
    [
        (Stat(5, 0.99872, 0.00114), "share", "0.9987 ± 0.0011"),
        (Stat(1, 0.5, None), "share", "0.5000"),
        (Stat(5, 0.0021349, 0.00091), "small", "0.00213 ± 0.00091"),
        (Stat(5, 1.23456, 0.2), "small", "1.23 ± 0.20"),
        (Stat(2, 0.0, 0.0), "small", "0.0000 ± 0.0000"),
        (Stat(5, 1234.4, 10.6), "count", "1,234 ± 11"),
        (Stat(5, 12.34, 0.56), "seconds", "12.3 ± 0.6"),
        (Stat(5, 116384, 0.0), "size", "116,384"),
        (Stat(5, 116384, 11.0), "size", "116,384 ± 11"),
        (Stat(2, math.nan, math.nan), "small", "not a number ± not a number"),
        (None, "share", "–"),
    ],
)
def test_how_numbers_are_written(stat, style, written):
    assert write_stat(stat, style) == written


def test_fewer_values_than_runs_are_told():
    assert write_stat(Stat(4, 300.0, 20.0), "count", of=5) == "300 ± 20 (4 of 5)"
    assert write_stat(Stat(5, 300.0, 20.0), "count", of=5) == "300 ± 20"


def test_only_solved_runs_have_steps_to_solve(tmp_path):
    runs = [run(tmp_path, steps=300), run(tmp_path, steps=2000, status="finished")]
    assert STEPS_TO_SOLVE.stat(runs) == Stat(1, 300.0, None)


def test_the_best_run_is_the_better_one_and_of_equals_the_faster(tmp_path):
    runs = [
        run(tmp_path / name, steps=steps, **{"test/loss": loss, "test/token_accuracy": 1.0})
        for name, steps, loss in (("a", 300, 0.5), ("b", 200, 0.7), ("c", 400, 0.1))
    ]
    assert of_summary("test/loss").best(runs).folder.name == "c"
    assert of_summary("test/token_accuracy").best(runs).folder.name == "b"
    assert of_summary("test/loss").best([]) is None


def test_the_chosen_metric_comes_first():
    names = [measure.name for measure in main_measures("test/token_accuracy")]
    assert names == ["token accuracy", "sequence accuracy", "loss", "steps to solve",
                     "seconds to solve", "parameters"]  # fmt: skip
    assert [measure.name for measure in main_measures("test/loss")].count("loss") == 1


def test_an_unknown_metric_names_the_nearest(tmp_path):
    runs = [read_run(write_run(tmp_path / "run"))]
    check_metric("test/loss", runs)
    with pytest.raises(UserError, match="did you mean 'test/sequence_accuracy'"):
        check_metric("test/sequence_acuracy", runs)


def test_a_value_that_is_no_number_is_never_the_best(tmp_path):
    runs = [run(tmp_path / str(loss), **{"test/loss": loss}) for loss in (math.nan, 0.5, 0.25)]
    assert of_summary("test/loss").best(runs).number("test/loss") == 0.25
