"""Bad input, made from the config tree and by damaging a run: every mistake is one sentence.

Usage: python tests/reliability/bad_input.py [n=1000] [seed=0] [at_once=2] [only=NUMBER]

What is tried is in bad_cases.py: keys of every option with values of another type, range or size;
the commands' own settings; and files of a real run, and of the cache, that are damaged. Each case
is a child, forked from a process that has done every command once, in a folder, with a time and a
memory limit of its own. Found are: a traceback, an exit code that is neither 0, 1 nor 2, no
sentence or more than one, a refusal after more than 5 seconds of the processor, and files left
behind by what was refused. What is accepted and takes longer is stopped by SIGTERM, and must obey.
What is accepted is listed at the end.
"""

import contextlib
import io
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NoReturn

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import psutil
from bad_cases import OPENING, SMALL, STUDY, Case, cases

SECONDS = 5.0
"""Of the processor: a refusal that takes more is found; what is accepted gets SIGTERM then."""
TO_STOP = 10.0
"""Seconds of the processor in which a case must end after that."""
SERVED = 12.0
"""Seconds after which a server, which uses hardly any of the processor, gets SIGTERM."""
LIMIT = 120.0
"""Seconds after which a case that waits for something is ended, and found."""
MEMORY = 12 * 2**30
ACCEPTED = "accepted"


class Trying:
    """A case in a child of its own.

    Args:
        case: what to try.
        whole: the folder with the run and the cache, of which the case gets a copy.
    """

    def __init__(self, case: Case, whole: Path) -> None:
        self.case = case
        self.home = Path(tempfile.mkdtemp(prefix="bad_input_"))
        self.folder = self.home / "inner"
        shutil.copytree(whole, self.folder)
        if case.damage:
            case.damage(self.folder)
        self.before = _listing(self.home)
        self.began = time.monotonic()
        self.stopped_at: float | None = None
        self.used = 0.0
        self.pid = os.fork()
        if self.pid == 0:
            _be_the_child(case, self.folder)

    def found(self) -> str | None:
        """What was: None while it is running, empty where it was refused as it should be."""
        with contextlib.suppress(psutil.NoSuchProcess):
            times = psutil.Process(self.pid).cpu_times()
            self.used = max(self.used, times.user + times.system)
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        if ended:
            verdict = self._verdict(os.waitstatus_to_exitcode(status))
        elif self.stopped_at is None and (self.used > SECONDS or self._serves()):
            self.stopped_at = self.used
            os.kill(self.pid, signal.SIGTERM)
            return None
        elif self.stopped_at is not None and self.used > self.stopped_at + TO_STOP:
            verdict = f"still there {TO_STOP:.0f} s after SIGTERM"
        elif time.monotonic() - self.began > LIMIT:
            verdict = f"not done after {LIMIT:.0f} s"
        else:
            return None
        if not ended:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        shutil.rmtree(self.home)
        return verdict

    def _serves(self) -> bool:
        return self.case.words[0] == "dashboard" and time.monotonic() - self.began > SERVED

    def _verdict(self, code: int) -> str:
        said = (self.folder / ".said").read_text(errors="replace").strip()
        (self.folder / ".said").unlink()
        complaints = [line for line in said.splitlines() if line.startswith("mha_lab: ")]
        if self.stopped_at is not None and code in (-signal.SIGTERM, 128 + signal.SIGTERM):
            return ACCEPTED
        if "Traceback" in said or code not in (0, 1, 2):
            return f"exit {code}: {said[-400:]}"
        if code == 0 or (code == 1 and self.case.words[0] == "check" and not complaints):
            return ACCEPTED  # a check that fails is told among the checks
        if not complaints or len(complaints) > 1 + (self.case.words[0] == "report"):
            return f"exit {code} with {len(complaints)} sentences: {said[-300:]}"
        if self.stopped_at is not None:
            return f"more than {SECONDS:.0f} s: {said[-200:]}"
        left = _listing(self.home) - self.before
        if code == 2 and not self.case.damage and left:
            return f"left files behind: {sorted(left)[:5]}: {said[-100:]}"
        if (self.folder / "mark").exists():
            return "ran what it was given"
        return ""


def _listing(folder: Path) -> set[str]:
    found = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    return {name for name in found if not name.endswith(".lock") and "/cache" not in name}


def _be_the_child(case: Case, folder: Path) -> NoReturn:
    code = 70
    try:
        os.chdir(folder)
        os.environ["MHA_LAB_CACHE"] = str(folder / "cache")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
        said = os.open(".said", os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1)
        os.dup2(said, 2)
        from mha_lab.cli import run

        code = run(case.words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def make_whole(home: Path) -> Path:
    """A folder with a run and its cache; done in this process, which has imported all then."""
    from mha_lab.cli import run

    whole = home / "whole"
    whole.mkdir()
    os.environ["MHA_LAB_CACHE"] = str(whole / "cache")
    os.chdir(whole)
    with contextlib.redirect_stdout(io.StringIO()):
        assert run(("train", "task=copy", *SMALL, "hydra.run.dir=run")) == 0
        Path("study").mkdir()
        Path("study/study.yaml").write_text(STUDY)
        shutil.copytree("run", home / "run")
        os.chdir(home)
        for words in OPENING:
            assert run(words) == 0, words
    return whole


def main() -> int:
    """Run all cases and tell what was found."""
    sys.stdout.reconfigure(errors="backslashreplace")
    settings = dict(word.split("=", 1) for word in sys.argv[1:])
    n, seed = int(settings.get("n", 1000)), int(settings.get("seed", 0))
    at_once = int(settings.get("at_once", len(os.sched_getaffinity(0))))
    started = time.monotonic()
    counts: Counter[str] = Counter()
    accepted = []
    with tempfile.TemporaryDirectory() as home:
        whole = make_whole(Path(home))
        files = [p.relative_to(whole) for p in sorted(whole.rglob("*")) if p.is_file()]
        in_run, in_cache = ([f for f in files if f.parts[0] == part] for part in ("run", "cache"))
        waiting = list(enumerate(cases(n, seed, in_run, in_cache)))
        if "only" in settings:
            waiting = [waiting[int(settings["only"])]]
        waiting.reverse()
        trying: dict[int, Trying] = {}
        while waiting or trying:
            while waiting and len(trying) < at_once:
                number, case = waiting.pop()
                trying[number] = Trying(case, whole)
            time.sleep(0.002)
            for number, one in list(trying.items()):
                found = one.found()
                if found is None:
                    continue
                del trying[number]
                done = " ".join(shown for shown in one.case.words if shown not in SMALL)
                done = f"{done}  [{one.case.done}]" if one.case.done else done
                is_fine = found in ("", ACCEPTED)
                counts[(found or "refused") if is_fine else "FOUND"] += 1
                if found == ACCEPTED:
                    accepted.append(done + "  (until SIGTERM)" * (one.stopped_at is not None))
                elif found:
                    print(f"{number}: {done[:300]}\n    {found}", flush=True)
    print("accepted:", *(f"  {one[:200]}" for one in sorted(accepted)), sep="\n")
    print(f"{n} cases, seed {seed}: {counts['refused']} refused in a sentence, "
          f"{counts[ACCEPTED]} accepted, {counts['FOUND']} found wrong, in "
          f"{time.monotonic() - started:.0f} s")  # fmt: skip
    return 1 if counts["FOUND"] else 0


if __name__ == "__main__":
    sys.exit(main())
