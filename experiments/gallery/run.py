"""Train every mechanism on the same copy and sort, in the decoder-only model, and compare.

python experiments/gallery/run.py [copy] [sort]     both, or one; then the table and the picture

Runs that are done are not made again, and one that was interrupted goes on.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import torch
from picture import draw

from mha_lab import config
from mha_lab.errors import UserError
from mha_lab.run import train

HERE = Path(__file__).parent
RUNS = Path("outputs/gallery")
TASKS = {
    "copy": ["task.max_length=5", "trainer.max_steps=400"],
    "sort": ["task.max_length=4", "task.vocab_size=5", "trainer.max_steps=500",
             "optimizer.lr=3e-3", "optimizer.decay_steps=1000"],
}  # fmt: skip
"""Small, so that each run takes seconds."""

ALIKE = ("builtin", "composed", "masked_decoder")
"""In this model the same as custom: torch's own, the parts of plain attention, custom's decoder."""

SAME_FOR_ALL = [
    "model=decoder",
    "trainer.val_check_interval=25",
    "callbacks.stop_when_solved.threshold=0.99",
    "data.validation_size=500",
    "data.test_size=2000",
    "callbacks.attention_maps=null",
    "callbacks.text_samples=null",
    "trainer.enable_progress_bar=false",
    "logger=csv",
]
COLUMNS = ("task", "attention", "steps", "accuracy", "seconds", "parameters")


def main(tasks: list[str]) -> int:
    """Train what is missing, then write the table and draw the picture. Returns an exit code."""
    torch.set_num_threads(1)  # so small a model is fastest so
    mechanisms = [name for name in config.options("attention") if name not in ALIKE]
    for task in tasks or TASKS:
        for mechanism in mechanisms:
            run(task, mechanism)
    found = [row(task, mechanism) for task in TASKS for mechanism in mechanisms]
    rows = [each for each in found if each is not None]
    write_table(rows)
    draw([each for each in rows if each["task"] == "copy"], RUNS, HERE / "gallery.png")
    return 0


def run(task: str, mechanism: str) -> None:
    """One run, unless it is done."""
    folder = RUNS / f"{task}_{mechanism}"
    if is_done(folder):
        return
    words = [f"+experiment={task}", f"attention={mechanism}", *SAME_FOR_ALL, *TASKS[task]]
    try:
        summary = train(
            config.compose(words, run_dir=folder), resume=folder.exists(), hparams=False
        )
    except UserError as error:
        print(f"{task} {mechanism}: refused: {error}", flush=True)
        return
    print(task, mechanism, summary["status"], summary["steps"], flush=True)
    if summary["status"] == "interrupted":
        sys.exit(130)


def is_done(folder: Path) -> bool:
    """Whether a run got to its end."""
    file = folder / "summary.json"
    return file.is_file() and json.loads(file.read_text())["status"] in ("solved", "finished")


def row(task: str, mechanism: str) -> dict[str, Any] | None:
    """What the table says of a run; None where there is none."""
    folder = RUNS / f"{task}_{mechanism}"
    if not is_done(folder):
        return None
    summary = json.loads((folder / "summary.json").read_text())
    steps = summary["steps"]
    return {
        "task": task, "attention": mechanism,
        "steps": str(steps) if summary["status"] == "solved" else f"> {steps}",
        "accuracy": f"{summary['test/sequence_accuracy']:.3f}",
        "seconds": f"{summary['train_seconds']:.1f}",
        "parameters": str(summary["parameters"]),
    }  # fmt: skip


def write_table(rows: list[dict[str, Any]]) -> None:
    """``table.csv``, and ``table.md``: a row for each mechanism, both tasks beside one another."""
    with (HERE / "table.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    keys = ("steps", "accuracy", "seconds")
    titles = ("steps to solve", "test accuracy", "seconds")
    head = ["mechanism", *(f"{task}: {title}" for task in TASKS for title in titles)]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for mechanism in dict.fromkeys(each["attention"] for each in rows):
        cells = [mechanism]
        for task in TASKS:
            of_task = (e for e in rows if (e["task"], e["attention"]) == (task, mechanism))
            one = next(of_task, None)
            cells += [one[key] for key in keys] if one else ["-"] * len(keys)
        lines.append("| " + " | ".join(cells) + " |")
    (HERE / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
