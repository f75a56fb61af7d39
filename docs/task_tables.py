"""Write the two tables of docs/tasks.md.

    python docs/task_tables.py rules                   every task: rule, source, chance (seconds)
    python docs/task_tables.py accuracy [TASK ...]     trains +experiment=TASK and measures it

The first is made of docstrings and configs, and a test holds the page to it. The second trains each
recipe with three seeds, one after another, and evaluates each run in its training range, up to
twice and up to three times that length: run it on a machine that does nothing else. Runs are kept
in outputs/task_table; what is finished there is not trained again.
"""

import importlib
import re
import statistics
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "tasks.md"
RUNS = Path("outputs/task_table")
SEEDS = (0, 1, 2)


def main(words: list[str]) -> None:
    """Write the table that is named."""
    if words == ["rules"]:
        table = rules()
    elif words[:1] == ["accuracy"]:
        table = accuracy(words[1:] or names())
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


def accuracy(tasks: list[str]) -> str:
    """One line a task: sequence accuracies, the mean of the seeds, and the least in training."""
    columns = ("lengths", "chance", "in range", "least seed", "up to 2×", "up to 3×", "s")
    lines = [f"| `+experiment=` | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    for name in tasks:
        found = [measured(name, seed) for seed in SEEDS]
        inside, twice, thrice = zip(*(shares for _, shares, _ in found), strict=True)
        low, high = found[0][0]
        seconds = statistics.mean(one for _, _, one in found)
        task, _ = made(name)
        lines.append(
            f"| `{name}` | {low}-{high} | {task.chance:.3g} | {statistics.mean(inside):.4f} "
            f"| {min(inside):.4f} | {statistics.mean(twice):.4f} | {statistics.mean(thrice):.4f} "
            f"| {seconds:.0f} |"
        )
    return "\n".join(lines)


def measured(name: str, seed: int) -> tuple[tuple[int, int], list[float], float]:
    """The lengths of one run, its accuracy on three ranges, and its training time."""
    from mha_lab.config import compose
    from mha_lab.length_evaluation import evaluate_lengths, trained_lengths
    from mha_lab.run import train
    from mha_lab.training.run_folder import read_summary

    folder = RUNS / name / str(seed)
    if read_summary(folder).get("status") not in ("finished", "solved"):
        train(compose([f"+experiment={name}", f"seed={seed}"], run_dir=folder))
    low, high = trained_lengths(folder) or (1, 1)
    ranges = [(low, high), (high + 1, 2 * high), (2 * high + 1, 3 * high)]
    result = evaluate_lengths(folder, ranges, samples=500)
    shares = [float(row["sequence_accuracy"]) for row in result.ranges]
    return (low, high), shares, float(read_summary(folder)["train_seconds"])


if __name__ == "__main__":
    main(sys.argv[1:])
