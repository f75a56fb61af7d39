"""One study in a real PostgreSQL server, worked on by four processes as by four machines."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import PATIENCE, SEARCH, SMALL, finish, pid, slots, start, wait_for
from optuna.trial import TrialState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3 * PATIENCE)]
SIZE, WORKERS = 11, 4


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A private server on a free port of this machine; gives its URL."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    home = Path(tempfile.mkdtemp(prefix="postgres-"))
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []  # it refuses root
    if user:
        shutil.chown(home, "postgres")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def run(program: str, *words: str) -> None:
        command = [*user, str(programs[-1] / program), "-D", str(home / "data"), *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=home)

    run("initdb", "-A", "trust", "-U", "lab", "--no-sync")
    options = f"-h 127.0.0.1 -p {port} -k {home} -F"
    run("pg_ctl", "-w", "-o", options, "-l", str(home / "log"), "start")
    try:
        yield f"postgresql://lab@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(home)


def test_four_workers_share_a_study_and_survive_a_killed_one(server: str, tmp_path: Path):
    def plan(worker: int) -> tuple[str, ...]:
        # A folder each: nothing but the server is shared.
        where = (f"sweep.folder={tmp_path / str(worker)}", f"sweep.storage={server}")
        # Trials long enough for one to be seen, and its worker killed, while it runs.
        longer = [word.replace("max_steps=6", "max_steps=60") for word in SMALL]
        return (*longer, *SEARCH, *where, f"sweep.n_trials={SIZE}", "sweep.lease=6")

    log = tmp_path / "log"
    processes = [start("sweep", *plan(worker), log=log) for worker in range(WORKERS)]
    wait_for((tmp_path / "0" / "sweep.yaml").exists, processes[0], log)
    seen = slots(plan(0), SIZE)
    known = {process.pid: process for process in processes}

    def victim() -> int | None:
        for trial in seen.trials():
            if trial.state == TrialState.RUNNING and "worker" in trial.user_attrs:
                return pid(trial)
        return None

    wait_for(lambda: victim() is not None, processes[0], log)
    killed = known.pop(victim() or 0)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    for process in known.values():
        finish(process, log)
    trials = seen.trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * SIZE
    assert len({pid(trial) for trial in trials}) >= 3
    finished = [t for t in seen.study.get_trials() if t.state == TrialState.COMPLETE]
    assert len(finished) == SIZE  # none was run twice
    summaries = [run.parent.name for run in tmp_path.glob("*/trials/*/summary.json")]
    assert sorted(summaries) == sorted(f"{trial.number:03d}" for trial in trials)
    lost = [trial for trial in seen.study.get_trials() if "lost" in trial.user_attrs]
    assert [trial.user_attrs["lost"] for trial in lost] in ([], ["died"])


def test_a_password_is_never_shown(server: str, tmp_path: Path):
    url = server.replace("lab@", "nobody:secret@")
    log = tmp_path / "log"
    process = start(
        "sweep", *SMALL, *SEARCH, f"sweep.folder={tmp_path / 's'}", f"sweep.storage={url}", log=log
    )
    assert process.wait(PATIENCE) == 2
    text = log.read_text()
    assert "cannot reach sweep.storage=postgresql://nobody:***@" in text
    assert "secret" not in text
    assert text.count("\n") == 1
