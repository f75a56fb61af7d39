"""The two tables of docs/tasks.md.

    python docs/task_tables.py rules                   every task: rule, source, chance (seconds)
    python docs/task_tables.py accuracy [TASK ...] [minutes=10]
                                                       trains +experiment=TASK and measures it

The first is made of docstrings and configs, and a test holds the page to it. The second trains each
recipe with three seeds, first all with the first one. In range a run has the accuracy of its whole
test set; up to twice and up to three times that length, 500 sequences are decoded. What is done is
kept in outputs/task_table and not done again; minutes= begins no further run after that time, and
the table then has what there is.
"""

import importlib
import json
import math
import re
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "tasks.md"
RUNS = Path("outputs/task_table")
KEPT, CPU_TIME = "measured.json", "cpu_seconds.txt"
SEEDS = (0, 1, 2)


def main(words: list[str]) -> None:
    """Write the table that is named."""
    if words == ["rules"]:
        table = rules()
    elif words[:1] == ["accuracy"]:
        limit = [float(word[8:]) for word in words if word.startswith("minutes=")]
        chosen = [word for word in words[1:] if not word.startswith("minutes=")]
        measure_all(chosen or names(), seconds=60 * limit[0] if limit else math.inf)
        table = accuracy()
    else:
        raise SystemExit(__doc__)
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replaced(text, words[0], table), encoding="utf-8")


def names() -> list[str]:
    """The tasks that make their sequences."""
    from mha_lab.config import options

    return [name for name in options("task") if name != "files"]


def replaced(text: str, name: str, table: str) -> str:
    """The page with another table between its marks."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, rest = text.split(start)
    return f"{before}{start}\n{table}\n{end}{rest.split(end)[1]}"


def rules() -> str:
    """One line a task, a folder at a time."""
    lines: dict[str, list[str]] = {}
    for name in names():
        task, module = made(name)
        doc = str(module.__doc__)
        rule = doc.splitlines()[0].partition(": ")[2].rstrip(".").replace("``", "`")
        source = re.search(r"Source: (.*?\(\d{4}\)|[^,]*, [^,]*)", doc.replace("\n", " "))
        assert source is not None, f"{module.__name__} names no source"
        folder = module.__name__.split(".")[-2]
        row = f"| `{name}` | {rule} | {source[1]} | {task.chance:.3g} |"
        lines.setdefault(folder, []).append(row)
    head = "| `task=` | rule | source | chance |\n|---|---|---|--:|"
    groups = ("copying", "sorting", "formal", "recall", "counting")
    bodies = ["\n".join([f"| **{g}** | | | |", *lines.pop(g)]) for g in groups]
    assert not lines, f"unknown folders {[*lines]}"
    return "\n".join([head, *bodies])


def made(name: str) -> tuple[Any, Any]:
    """A task with its default arguments, and its module."""
    from mha_lab.build import build
    from mha_lab.config import compose

    cfg = compose([f"task={name}"], run_dir=".")
    module, _, function = cfg.task._target_.rpartition(".")
    where = getattr(importlib.import_module(module), function).__module__
    return build(cfg, "task"), importlib.import_module(where)


def measure_all(tasks: list[str], *, seconds: float) -> None:
    """Train and evaluate what is not kept yet, and begin nothing after so many seconds."""
    end = time.monotonic() + seconds
    for seed in SEEDS:
        for name in tasks:
            if kept(name, seed) is None and time.monotonic() < end:
                measure(name, seed)


def measure(name: str, seed: int) -> None:
    """Train one run, and keep its accuracy on three ranges and its seconds of the processor."""
    from mha_lab.config import compose
    from mha_lab.evaluation.by_length import evaluate_lengths, trained_lengths
    from mha_lab.run import train
    from mha_lab.training.run_folder import read_summary

    folder = RUNS / name / str(seed)
    if read_summary(folder).get("status") not in ("finished", "solved"):
        shutil.rmtree(folder, ignore_errors=True)  # broken off: from the start
        words = [f"+experiment={name}", f"seed={seed}", "trainer.enable_progress_bar=false"]
        since = time.process_time()
        train(compose(words, run_dir=folder))
        (folder / CPU_TIME).write_text(f"{time.process_time() - since:.0f}")
    if read_summary(folder).get("status") not in ("finished", "solved"):
        raise SystemExit(f"{folder} was stopped: it is trained again the next time")
    low, high = trained_lengths(folder) or (1, 1)
    beyond = evaluate_lengths(
        folder, [(high + 1, 2 * high), (2 * high + 1, 3 * high)], samples=500
    ).ranges
    shares = [read_summary(folder)["test/sequence_accuracy"]]
    shares += [float(row["sequence_accuracy"]) for row in beyond]
    found = {
        "lengths": f"{low}-{high}", "shares": shares,
        "seconds": float((folder / CPU_TIME).read_text()),
    }  # fmt: skip
    (folder / KEPT).write_text(json.dumps(found))
    print(name, seed, found, flush=True)


def kept(name: str, seed: int) -> dict[str, Any] | None:
    """What was measured of a run; None where it was not."""
    file = RUNS / name / str(seed) / KEPT
    return json.loads(file.read_text()) if file.is_file() else None


def accuracy() -> str:
    """One line a task: sequence accuracies, the mean of the seeds, and the least in training."""
    columns = ("lengths", "chance", "seeds", "in range", "least", "up to 2×", "up to 3×", "CPU s")
    lines = [f"| `+experiment=` | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    for name in names():
        found = [one for seed in SEEDS if (one := kept(name, seed)) is not None]
        if not found:
            continue
        means = [
            statistics.mean(shares) for shares in zip(*(x["shares"] for x in found), strict=True)
        ]
        seconds = statistics.mean(one["seconds"] for one in found)
        cells = [
            found[0]["lengths"], f"{made(name)[0].chance:.3g}", str(len(found)), f"{means[0]:.4f}",
            f"{min(one['shares'][0] for one in found):.4f}", f"{means[1]:.4f}", f"{means[2]:.4f}",
            f"{seconds:.0f}",
        ]  # fmt: skip
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
