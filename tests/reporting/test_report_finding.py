import pytest
from synthetic_runs import write_failed, write_run

from mha_lab.errors import UserError
from mha_lab.reporting.finding import find_runs, natural_key


@pytest.fixture
def tree(tmp_path):
    for number in (0, 2, 10):
        write_run(tmp_path / "multirun" / str(number))
    write_failed(tmp_path / "multirun" / "11")
    (tmp_path / "multirun" / "multirun.yaml").write_text("hydra: {}\n")
    write_run(tmp_path / "single")
    return tmp_path


def names(found):
    return [f"{folder.parent.name}/{folder.name}" for folder in found.folders]


def test_a_folder_is_searched_with_all_below_it_in_natural_order(tree):
    found = find_runs([str(tree)])
    assert names(found)[:4] == ["multirun/0", "multirun/2", "multirun/10", "multirun/11"]
    assert len(found.folders) == 5
    assert found.common == tree
    assert found.ignored == []


def test_the_common_folder_of_a_single_run_is_the_one_above(tree):
    assert find_runs([str(tree / "single")]).common == tree
    assert find_runs([str(tree / "multirun" / "0"), str(tree / "multirun" / "2")]).common == (
        tree / "multirun"
    )


def test_globs_are_expanded_also_recursively(tree):
    assert names(find_runs([str(tree / "multi*" / "[02]")])) == ["multirun/0", "multirun/2"]
    assert len(find_runs([str(tree / "**")]).folders) == 5


def test_each_run_counts_once(tree):
    found = find_runs([str(tree / "multirun"), str(tree / "multirun" / "2"), str(tree / "single")])
    assert len(found.folders) == 5


def test_what_a_shell_pattern_matched_beside_runs_is_ignored_and_told(tree):
    found = find_runs([str(tree / "multirun" / "0"), str(tree / "multirun" / "multirun.yaml")])
    assert names(found) == ["multirun/0"]
    assert found.ignored == [str(tree / "multirun" / "multirun.yaml")]


def test_evaluations_checkpoints_and_sweeps_are_no_runs(tree):
    for inside in ("evaluations/2026", "checkpoints/x"):
        folder = tree / "single" / inside
        folder.mkdir(parents=True)
        (folder / "summary.json").write_text("{}")
    sweep = tree / "sweep"
    write_run(sweep / "trials" / "000" / "seed_0")
    write_run(sweep / "trials" / "000" / "seed_1")
    (sweep / "sweep.csv").write_text("trial\n")
    (sweep / "config.yaml").write_text("seed: 0\n")
    assert len(find_runs([str(tree / "single")]).folders) == 1
    assert names(find_runs([str(sweep)])) == ["000/seed_0", "000/seed_1"]


@pytest.mark.parametrize(
    ("word", "said"),
    [("nothing", "does not exist"), ("noth*", "nothing matches"), ("empty", "no runs in")],
)
def test_nothing_found_is_an_error(tmp_path, monkeypatch, word, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=said):
        find_runs([word])


def test_natural_order():
    assert sorted(["a10", "a9", "b1", "a9c"], key=natural_key) == ["a9", "a9c", "a10", "b1"]


def test_links_to_runs_are_followed_and_each_run_is_found_once(tree):
    chosen = tree / "chosen"
    chosen.mkdir()
    (chosen / "best").symlink_to(tree / "multirun" / "2", target_is_directory=True)
    (chosen / "all").symlink_to(tree / "multirun", target_is_directory=True)
    (chosen / "back").symlink_to(tree, target_is_directory=True)
    (chosen / "gone").symlink_to(tree / "nowhere", target_is_directory=True)
    assert len(find_runs([str(chosen)]).folders) == len(find_runs([str(tree)]).folders) == 5
    (chosen / "back").unlink()
    (chosen / "all").unlink()
    assert find_runs([str(chosen)]).folders == [chosen / "best"]
    assert "chosen" not in str(find_runs([str(tree)]).folders), "a run has its own name"
