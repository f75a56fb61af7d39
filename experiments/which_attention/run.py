"""Train every variant on copy and sort, at two learning rates and five seeds, and compare.

python experiments/which_attention/run.py [sweep settings, such as sweep.n_jobs=2]
"""

import os
import sys
from pathlib import Path

from mha_lab import cli

REPORT = Path(os.path.relpath(Path(__file__).parent / "report"))  # told in the report itself
RUNS = Path("outputs/which_attention")
VARIANTS = {
    "attention": ["attention=builtin,custom,masked_decoder"],
    "recurrent": ["model=recurrent"],
}
SCHEDULES = {"copy": "optimizer.decay_steps=1500", "sort": "optimizer.decay_steps=1000"}
SAME_FOR_ALL = [
    "optimizer.lr=3e-3,5e-3",
    "task.max_length=6",
    "trainer.max_steps=1000",
    "sweep=grid",
    "sweep.space.model.embed_dim=null",  # the grid's own; width is not the question
    "sweep.seeds=5",
]


def main(settings: list[str]) -> int:
    """Four sweeps, 80 runs; each goes on where it was interrupted. Returns an exit code."""
    chosen = {word.partition("=")[0] for word in settings}
    same = [word for word in SAME_FOR_ALL if word.partition("=")[0] not in chosen]
    for task in ("copy", "sort"):
        for name, choice in VARIANTS.items():
            folder = RUNS / f"{task}_{name}"
            place = [f"sweep.name={folder.name}", f"sweep.folder={folder}"]
            words = [f"+experiment={task}", SCHEDULES[task], *choice, *same, *place, *settings]
            if code := cli.run(["sweep", *words]):
                return code
    grouped = "by=task,attention,optimizer.lr"
    return cli.run(["report", str(RUNS), grouped, "name=Which attention?", f"out={REPORT}"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
