"""Train every variant on copy and sort, at two learning rates and five seeds, and compare.

python experiments/which_attention/run.py [sweep settings, such as sweep.n_jobs=2]
"""

import sys
from pathlib import Path

from mha_lab.commands import report, sweep

HERE = Path(__file__).parent
RUNS = Path("outputs/which_attention")
RATES = "optimizer.lr=3e-3,5e-3"
VARIANTS = {
    "attention": ["attention=builtin,custom,masked_decoder"],
    "recurrent": ["model=recurrent"],
}


def main(settings: list[str]) -> None:
    """Four sweeps, 80 runs; each goes on where it was interrupted."""
    for task in ("copy", "sort"):
        for name, choice in VARIANTS.items():
            folder = RUNS / f"{task}_{name}"
            sweep.main(
                [
                    f"+experiment={task}",
                    *choice,
                    RATES,
                    "sweep=grid",
                    "sweep.space.model.embed_dim=null",  # the grid's own; width is not the question
                    "sweep.seeds=5",
                    f"sweep.name={folder.name}",
                    f"sweep.folder={folder}",
                    *settings,
                ]
            )
    report.main(
        [
            str(RUNS),
            "by=task,attention,optimizer.lr",
            "name=Which attention?",
            f"out={HERE / 'report'}",
        ]
    )


if __name__ == "__main__":
    main(sys.argv[1:])
