"""Kill training runs at random moments, resume them, and compare each with the unbroken run.

Usage:
  python tests/reliability/kill.py [kills=100] [seed=0] [keep=FOLDER]

Runs of copy and sort, with dropout, get kill -9, SIGTERM and Ctrl-C (SIGINT) at moments drawn from
the seed: anywhere, or just while a checkpoint is being written. Half of the runs have TMPDIR on
another filesystem than their outputs. Whatever was broken off is resumed until it ends; then its
weights must be bit for bit those of the unbroken run, and its metrics and events complete, in both
of TensorBoard's loaders.

A process of its own is what is killed each time. Most are forks of one that has imported torch,
which spares the seconds of starting Python; each tenth is `python -m mha_lab` from the beginning.
"""

import collections
import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import psutil
from same_run import differences

from mha_lab.cli import run as run_command
from mha_lab.interrupts import keep_interrupts
from mha_lab.quick_start import import_lightning

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
SETTINGS = (
    "model.embed_dim=16", "model.num_heads=2", "model.dropout=0.2", "trainer=cpu",
    "data.batch_size=16", "data.validation_size=50", "data.test_size=50",
    "trainer.max_steps=300", "trainer.val_check_interval=20", "trainer.log_every_n_steps=3",
    "+callbacks.attention_maps.every_n_steps=70", "trainer.enable_progress_bar=false",
)  # fmt: skip
TASKS = ("copy", "sort")
SECONDS_TO_STOP = 10  # of the processor
FRESH_EVERY = 10  # kills
MOST_KILLS = 15  # of one run


class Trial:
    """One run that is killed until it ends.

    Args:
        folder: where it is kept.
        task: its task.
        tmpdir: its TMPDIR.
        seconds: how long the unbroken run takes.
        draw: the random numbers.
        log: counts what happened.
    """

    def __init__(
        self, folder: Path, task: str, tmpdir: Path, seconds: float, draw: random.Random,
        log: collections.Counter,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.task = task
        self.tmpdir = tmpdir
        self.seconds = seconds
        self.draw = draw
        self.log = log
        self.faults: list[str] = []

    def go(self) -> Iterator[None]:
        """Until the run has ended; yields while it waits."""
        left = self.draw.randint(1, MOST_KILLS)
        while True:
            is_fresh = (self.log["kills"] + 1) % FRESH_EVERY == 0
            process = Process(self.words(), self.tmpdir, self.folder.with_suffix(".log"), is_fresh)
            if left:
                yield from self.wait_for_moment(process, is_fresh)
            while not left and not process.ended():
                yield
            if process.ended():
                break
            left -= 1
            signum = self.draw.choice(SIGNALS)
            process.kill(signum)
            self.log["kills"] += 1
            self.log[signum.name] += 1
            self.log["before the first checkpoint"] += not (self.folder / "checkpoints").exists()
            limit = process.seconds() + SECONDS_TO_STOP
            while not process.ended():
                if process.seconds() > limit:
                    self.faults.append(f"{signum.name}: still there after {SECONDS_TO_STOP} s")
                    process.kill(signal.SIGKILL)
                    limit = float("inf")
                yield
            if process.code == 0:
                break  # the signal came after the end
        if process.code != 0:
            self.faults.append(f"exit code {process.code}, see {self.folder.with_suffix('.log')}")

    def words(self) -> list[str]:
        """The command that begins the run, or goes on with it."""
        if (self.folder / "config.yaml").exists():
            return ["train", f"resume={self.folder}"]
        return ["train", f"task={self.task}", *SETTINGS, f"hydra.run.dir={self.folder}"]

    def wait_for_moment(self, process: "Process", is_fresh: bool) -> Iterator[None]:
        """Until a moment drawn at random, or until a checkpoint is half written after it."""
        started = time.monotonic()
        delay = self.draw.uniform(0, self.seconds * (2 if is_fresh else 0.6))
        is_writing = self.draw.random() < 0.3
        while not process.ended():
            is_time = time.monotonic() - started > delay
            if is_time and (not is_writing or any((self.folder / "checkpoints").glob(".*"))):
                self.log["while a checkpoint was written"] += is_writing
                return
            yield


class Process:
    """A training command in a process of its own."""

    def __init__(self, words: list[str], tmpdir: Path, log: Path, is_fresh: bool) -> None:
        self.code: int | None = None
        self._popen: subprocess.Popen | None = None
        if is_fresh:
            with log.open("a") as out:
                self._popen = subprocess.Popen(
                    [sys.executable, "-m", "mha_lab", *words], stdout=out, stderr=out,
                    env={**os.environ, "TMPDIR": str(tmpdir)},
                )  # fmt: skip
            return
        self._pid = os.fork()
        if self._pid == 0:
            _become(words, tmpdir, log)

    def kill(self, signum: int) -> None:
        """Send a signal."""
        if not self.ended():
            os.kill(self._popen.pid if self._popen else self._pid, signum)

    def seconds(self) -> float:
        """Of the processor, which it was given; a busy machine gives few."""
        with contextlib.suppress(psutil.NoSuchProcess):
            used = psutil.Process(self._popen.pid if self._popen else self._pid).cpu_times()
            return used.user + used.system
        return 0.0

    def ended(self) -> bool:
        """Whether it has; its exit code is known then."""
        if self.code is None and self._popen is not None:
            self.code = self._popen.poll()
        elif self.code is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None


def _become(words: list[str], tmpdir: Path, log: Path) -> None:
    """In a fork: run the command as ``python -m mha_lab`` does, and exit."""
    code = 70
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.environ["TMPDIR"] = tempfile.tempdir = str(tmpdir)
        keep_interrupts()
        code = run_command(words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except KeyboardInterrupt:
        code = 130
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def unbroken(folder: Path, task: str) -> float:
    """Make the run that nothing breaks off; tell how many seconds it took."""
    started = time.monotonic()
    process = Process(
        ["train", f"task={task}", *SETTINGS, f"hydra.run.dir={folder}"],
        Path(tempfile.gettempdir()), folder.with_suffix(".log"), False,
    )  # fmt: skip
    while not process.ended():
        time.sleep(0.01)
    if process.code != 0:
        sys.exit(f"the unbroken run failed, see {folder.with_suffix('.log')}")
    return time.monotonic() - started


def another_filesystem(than: Path) -> Path | None:
    """A folder that a rename from there cannot reach; None where there is none."""
    for folder in ("/dev/shm", "/run", "/var/tmp"):
        path = Path(folder)
        if os.access(path, os.W_OK) and path.stat().st_dev != than.stat().st_dev:
            return Path(tempfile.mkdtemp(dir=path))
    return None


def compare(expected: Path, found: Path) -> list[str]:
    """What differs, told by a process of its own: TensorBoard's loaders start threads."""
    words = [sys.executable, __file__, "compare", str(expected), str(found)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return [f"cannot be compared: {done.stderr.strip().splitlines()[-1:]}"]
    return json.loads(done.stdout.splitlines()[-1])


def main(kills: int, seed: int, root: Path) -> int:
    """Kill, resume, compare, and print what came of it."""
    started = time.monotonic()
    elsewhere = another_filesystem(root)
    tmpdirs = [Path(tempfile.gettempdir()), elsewhere or Path(tempfile.gettempdir())]
    if elsewhere is None:
        print("no second filesystem: TMPDIR is always on that of the outputs")
    # A shell starts what is in its background deaf to Ctrl-C, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import_lightning()
    importlib.import_module("mha_lab.run")  # forks have it, too
    os.environ["MHA_LAB_CACHE"] = str(root / "cache")
    seconds = {task: unbroken(root / f"unbroken_{task}", task) for task in TASKS}
    draw, log = random.Random(seed), collections.Counter()
    trials: list[Trial] = []
    lanes: list[Iterator[None]] = []
    while lanes or log["kills"] < kills:
        while log["kills"] < kills and len(lanes) < (os.cpu_count() or 1):
            number = len(trials)
            task = TASKS[number % 2]
            trials.append(
                Trial(
                    root / f"{number:03d}", task, tmpdirs[number // 2 % 2], seconds[task], draw, log
                )
            )
            lanes.append(trials[-1].go())
        lanes = [lane for lane in lanes if next(lane, lanes) is None]
        time.sleep(0.001)
    wrong = 0
    for trial in trials:
        faults = trial.faults or compare(root / f"unbroken_{trial.task}", trial.folder)
        wrong += bool(faults)
        for fault in faults:
            print(f"{trial.folder.name} {trial.task}: {fault}")
    if elsewhere is not None:
        shutil.rmtree(elsewhere)
    same = len(trials) - wrong
    print(
        f"{same} of {len(trials)} runs, broken off {log['kills']} times, ended as the unbroken one"
    )
    print(", ".join(f"{count} {what}" for what, count in sorted(log.items()) if what != "kills"))
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        print(json.dumps(differences(Path(sys.argv[2]), Path(sys.argv[3]))))
        sys.exit(0)
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    root = Path(given["keep"]) if "keep" in given else Path(tempfile.mkdtemp(prefix="kill_"))
    root.mkdir(parents=True, exist_ok=True)
    code = main(int(given.get("kills", 100)), int(given.get("seed", 0)), root)
    if code == 0 and "keep" not in given:
        shutil.rmtree(root)
    sys.exit(code)
