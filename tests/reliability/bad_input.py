"""Bad input, made from the config tree and by damaging a run: every mistake is one sentence.

Usage: python tests/reliability/bad_input.py [n=1000] [seed=0]

Each case runs in a forked child with everything imported, in a folder, with a time and a memory
limit of its own. Half of them give a key of the config a value of another type, range or size; the
other half damage a file of a real run and open it. Found are: a traceback, an exit code that is
neither 0, 1 nor 2, more than one line of complaint, more than 5 seconds of the processor, and files
left behind by what was refused. What is accepted is listed at the end.
"""

import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SECONDS = 5.0
LIMIT = 90.0
"""Seconds after which a case is ended; what takes more than ``SECONDS`` counts as found."""
VALUES = [
    "null", "true", "''", "abc", "0", "-1", "1", "2", "3", "1.5", "1e3", "nan", "inf", "-inf",
    "1e400", "[1]", "[]", "{a:1}", "{}", "'../x'", "'/dev/null/x'", "'a b'", "${nope.nope}",
    "${seed}", "'\u0430'", "1000000", "1000000000000", str(10**30), "0x10", "'1'", "[[1]]",
    "{_target_:os.mkdir,path:mark}", "a=b", "(", "'", "x" * 300,
]  # fmt: skip
SMALL = [
    "trainer.max_steps=2", "trainer.val_check_interval=1", "data.validation_size=20",
    "data.test_size=20", "data.batch_size=4", "trainer.enable_progress_bar=false",
    "model.embed_dim=8", "model.num_heads=2", "hydra.run.dir=made",
]  # fmt: skip
KINDS = ("cut", "flip", "empty", "gone", "zeros", "other", "deep", "folder", "text")
TEXTS = (b"\xff", b"\x00", b"nan", b"${nope.nope}", b"-1", b"\n", b'"\\ud83d"')
COMMANDS = (
    ("evaluate", "run=run"),
    ("predict", "run=run", "1 2 3"),
    ("train", "resume=run", "trainer.max_steps=3"),
    ("report", "run"),
)


@dataclass(frozen=True)
class Case:
    """One command line, and what is done to the run's folder before it."""

    words: tuple[str, ...]
    damage: Callable[[Path], str] | None = None


def cases(n: int, seed: int, files: list[Path], keys: list[str]) -> list[Case]:
    """So many cases; the same ones for the same seed."""
    chance = random.Random(seed)
    made = []
    for number in range(n):
        if number % 2:
            file, words = chance.choice(files), chance.choice(COMMANDS)
            made.append(Case(words, _damage(file, chance.randrange(2**32))))
            continue
        key, value = chance.choice(keys), chance.choice(VALUES)
        word = chance.choice([f"{key}={value}"] * 8 + [f"~{key}", f"+{key}.new={value}"])
        rest = [small for small in SMALL if small.split("=")[0] != key]
        made.append(Case(("train", "task=copy", *rest, word)))
    return made


def _damage(file: Path, seed: int) -> Callable[[Path], str]:
    def do(run: Path) -> str:
        chance = random.Random(seed)
        place = run / file
        content = bytearray(place.read_bytes())
        kind = chance.choice(KINDS)
        at = chance.randrange(len(content) + 1)
        if kind == "cut":
            del content[at:]
        elif kind == "flip" and content:
            for _ in range(chance.randrange(1, 20)):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        elif kind == "empty":
            content.clear()
        elif kind == "zeros":
            content[at : at + 100] = bytes(100)
        elif kind == "other":
            content = bytearray(chance.randbytes(300))
        elif kind == "deep":
            content = bytearray(b"[" * 100_000)
        elif kind == "text":
            content[at:at] = chance.choice(TEXTS)
        place.unlink()
        if kind == "folder":
            place.mkdir()
        elif kind != "gone":
            place.write_bytes(content)
        return f"{kind} {file} ({seed})"

    return do


def keys_of_tree() -> list[str]:
    """Every key that any option of any group has."""
    from mha_lab.config import _known_keys

    return [key for key in _known_keys() if not key.startswith(("sweep", "experiment", "run_dir"))]


def run_case(case: Case, run: Path) -> tuple[str, str]:
    """What was found (empty where all is well), and what was done."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        done = " ".join(word for word in case.words if word not in SMALL)
        if case.damage:
            shutil.copytree(run, folder / "run")
            done = f"{done}  [{case.damage(folder / 'run')}]"
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            _be_the_child(case, folder)
        while time.monotonic() - began < LIMIT:
            ended, status, used = os.wait4(child, os.WNOHANG)
            if ended:
                break
            time.sleep(0.01)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"not done after {LIMIT:.0f} s", done
        seconds = used.ru_utime + used.ru_stime  # of the processor: others may work beside it
        said = (folder / ".said").read_text(errors="replace").strip()
        code = os.waitstatus_to_exitcode(status)
        complaints = [line for line in said.splitlines() if line.startswith("mha_lab: ")]
        if "Traceback" in said or code not in (0, 1, 2):
            return f"exit {code}: {said[-300:]}", done
        if code and len(complaints) != 1 and case.words[0] != "report":
            return f"exit {code} with {len(complaints)} sentences: {said[-300:]}", done
        if (folder / "mark").exists() or (code == 2 and (folder / "made").exists()):
            return "left files behind", done
        if seconds > SECONDS and code:
            return f"{seconds:.1f} s: {said[-100:]}", done
        return "" if code else "accepted", done


def _be_the_child(case: Case, folder: Path) -> None:
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_AS, (12 * 2**30, resource.RLIM_INFINITY))
    said = os.open(".said", os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    code = 70
    try:
        from mha_lab.cli import run

        code = run(case.words)
    except SystemExit as error:
        code = int(error.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> int:
    """Run all cases and tell what was found."""
    settings = dict(word.split("=", 1) for word in sys.argv[1:])
    n, seed = int(settings.get("n", 1000)), int(settings.get("seed", 0))
    with tempfile.TemporaryDirectory() as home:
        os.environ["MHA_LAB_CACHE"] = f"{home}/cache"
        import torch

        from mha_lab.quick_start import import_lightning

        import_lightning()
        import mha_lab.cli
        import mha_lab.evaluation
        import mha_lab.reporting.page  # noqa: F401  # imported once, before the forks

        torch.set_num_threads(1)
        whole = Path(home) / "whole"
        words = [word for word in SMALL if not word.startswith("hydra")]
        made = Case(("train", "task=copy", *words, f"hydra.run.dir={whole}"))
        found, _ = run_case(made, whole)
        assert found == "accepted", found
        files = sorted(p.relative_to(whole) for p in whole.rglob("*") if p.is_file())
        everything = cases(n, seed, files, keys_of_tree())
        counts: Counter[str] = Counter()
        accepted = []
        for number, case in enumerate(everything):
            found, done = run_case(case, whole)
            counts["accepted" if found == "accepted" else "refused" if not found else "FOUND"] += 1
            if found == "accepted":
                accepted.append(done)
            elif found:
                print(f"{number}: {done}\n    {found}", flush=True)
    print("accepted:", *sorted(accepted), sep="\n  ")
    print(f"{n} cases, seed {seed}: {counts['refused']} refused in a sentence, "
          f"{counts['accepted']} accepted, {counts['FOUND']} found wrong")  # fmt: skip
    return 1 if counts["FOUND"] else 0


if __name__ == "__main__":
    sys.exit(main())
