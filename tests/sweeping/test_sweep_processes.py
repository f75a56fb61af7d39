"""Sweeps in several processes, killed and started again."""

import os
import shlex
import signal
import time
from pathlib import Path

import pytest
from commands import PATIENCE, SEARCH, SMALL, finish, pid, slots, start, wait_for
from optuna.trial import TrialState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3 * PATIENCE)]
SIZE = 6


def plan(tmp_path: Path, *words: str) -> tuple[str, ...]:
    return (*SMALL, *SEARCH, f"sweep.folder={tmp_path / 'sweep'}", f"sweep.n_trials={SIZE}", *words)


def runs(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "sweep" / "trials").glob("*/summary.json"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_and_started_again_it_goes_on(tmp_path: Path, jobs: int):
    words, log = plan(tmp_path, f"sweep.n_jobs={jobs}"), tmp_path / "log"
    process = start("sweep", *words, log=log)
    wait_for((tmp_path / "sweep" / "study.journal").exists, process, log)
    seen = slots(words, SIZE)

    def is_in_the_middle() -> bool:
        trials = seen.trials()
        is_running = any("worker" in t.user_attrs for t in trials if t.state == TrialState.RUNNING)
        return is_running and sum(t.state == TrialState.COMPLETE for t in trials) >= 2

    wait_for(is_in_the_middle, process, log)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(3)  # its other processes end with it
    before = {t.number: t for t in seen.trials() if t.state == TrialState.COMPLETE}
    attempts = len(seen.study.get_trials())
    finish(start("sweep", *words, log=log), log)
    after = {trial.number: trial for trial in seen.trials()}
    assert [trial.state for trial in after.values()] == [TrialState.COMPLETE] * SIZE
    for number, trial in before.items():  # none is lost, none repeated
        assert after[number].datetime_complete == trial.datetime_complete
    assert 1 <= len(seen.study.get_trials()) - attempts <= jobs  # only what was under way
    assert len(runs(tmp_path)) == SIZE
    assert f"{len(before)} trials are finished already" in log.read_text()


def test_the_same_command_twice_joins_one_study(tmp_path: Path):
    words, log = plan(tmp_path), tmp_path / "log"
    processes = [start("sweep", *words, log=log) for _ in range(2)]
    for process in processes:
        finish(process, log)
    trials = slots(words, SIZE).trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * SIZE
    assert len({pid(trial) for trial in trials}) == 2
    assert len(runs(tmp_path)) == SIZE
    assert log.read_text().count("--config-name best") == 2  # both tell the whole result


def test_ctrl_c_stops_all_processes_and_says_how_to_go_on(tmp_path: Path):
    # So many trials that the first process is not through before the second one has started.
    words = [word for word in plan(tmp_path, "sweep.n_jobs=2") if "n_trials" not in word]
    log, size = tmp_path / "log", 1000
    command = ["sweep", *words, f"sweep.n_trials={size}"]
    process = start(*command, log=log)
    wait_for((tmp_path / "sweep" / "study.journal").exists, process, log)
    seen = slots(tuple(words), size)

    def both_run() -> bool:
        running = [t for t in seen.trials() if t.state == TrialState.RUNNING]
        return len({pid(trial) for trial in running if "worker" in trial.user_attrs}) == 2

    wait_for(both_run, process, log)
    workers = {pid(t) for t in seen.trials() if t.state == TrialState.RUNNING}
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    (told,) = [line for line in log.read_text().splitlines() if "python -m mha_lab" in line]
    assert shlex.split(told.split("python -m mha_lab ")[1]) == command
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
    assert not any(trial.state == TrialState.RUNNING for trial in seen.study.get_trials())


def test_sqlite_is_joined_by_two_processes(tmp_path: Path):
    words = plan(tmp_path, f"sweep.storage=sqlite:///{tmp_path}/study.db", "sweep.n_jobs=2")
    log = tmp_path / "log"
    finish(start("sweep", *words, log=log), log)
    trials = slots(words, SIZE).trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * SIZE
    assert len(runs(tmp_path)) == SIZE


def test_best_yaml_runs_as_the_last_lines_say(tmp_path: Path):
    words = [word for word in plan(tmp_path) if "n_trials" not in word]
    log = tmp_path / "log"
    finish(start("sweep", *words, "sweep.n_trials=2", log=log), log)
    (line,) = [line for line in log.read_text().splitlines() if "--config-name best" in line]
    command = line.split("python -m mha_lab ")[1].split()
    finish(start(*command, f"hydra.run.dir={tmp_path / 'again'}", log=log), log)
    assert (tmp_path / "again" / "summary.json").is_file()
