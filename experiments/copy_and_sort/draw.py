"""The figure: accuracy by length for copy and sort; maps of one sample of each range of copy."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mha_lab.evaluation.by_length import evaluate_lengths
from mha_lab.maps.attention_map import AttentionMap
from mha_lab.maps.colours import colours_of, show_weights
from mha_lab.reporting.drawing import INK, MUTED, SERIES, band
from mha_lab.reporting.statistics import describe
from mha_lab.studies.claims import by_seed
from mha_lab.studies.study import Study

SHOWN = ("rotary", "hard_alibi")
RANGES = ((8, 10), (11, 12), (16, 20))


def draw(study: Study, rows: list[dict[str, Any]]) -> Figure:
    """Above the two tasks with two layers, a line an encoding; below what a head looks at."""
    figure = Figure(figsize=(9.4, 9.2), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1, 2))
    all_axes = above.subplots(1, 2, sharey=True)
    for axes, task in zip(all_axes, ("copy", "sort"), strict=True):
        lines(study, rows, axes, task)
    all_axes[0].set_ylabel("sequences wholly right")
    all_axes[1].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    below.supylabel("written", color=MUTED, fontsize="medium")
    below.supxlabel("what the row reads of the source; dark: all of its weight", color=MUTED,
                    fontsize="medium")  # fmt: skip
    grid = below.subplots(len(SHOWN), len(RANGES))
    for row, position in zip(grid, SHOWN, strict=True):
        maps(study, row, position)
    return figure


def lines(study: Study, rows: list[dict[str, Any]], axes: Any, task: str) -> None:
    """Mean and standard deviation over the seeds, by range of lengths."""
    ranges = study.spec.lengths
    positions = dict.fromkeys(row["position"] for row in rows if row["position"])
    for i, position in enumerate(positions):
        where = {"task": task, "layers": "two", "position": position}
        stats = [
            describe(by_seed(rows, "sequence_accuracy", where | {"lengths": one}).values())
            for one in ranges
        ]
        mean = np.array([one.mean if one else np.nan for one in stats])
        sd = np.array([(one.sd or 0.0) if one else np.nan for one in stats])
        axes.plot(ranges, mean, color=SERIES[i], marker="o", ms=4, label=position)
        band(axes, ranges, mean, sd, SERIES[i], 0.0, 1.0)
    axes.set_ylim(-0.03, 1.03)
    axes.set_title(f"unique {task}, two layers")
    axes.set_xlabel("length (training: 1-10)")


def maps(study: Study, row: Any, position: str) -> None:
    """One head of the last layer at each range: the one that copies at the lengths of training."""
    wanted = {"task": "copy", "layers": "two", "position": position}
    job = next((job for job in study.jobs if job.levels == wanted), None)
    if job is None:  # a form without this arm
        return
    found = evaluate_lengths(study.runs / job.name, RANGES, samples=20).examples
    last = {name: example.maps[-1] for name, example in found.items()}
    first = next(iter(last.values()))
    head = int(first.scores()["induction"].argmax())
    for axes, (lengths, one) in zip(row, last.items(), strict=True):
        draw_map(axes, one, head)
        axes.set_title(f"{position}, length {lengths}: head {head}", color=INK)


def draw_map(axes: Any, one: AttentionMap, head: int) -> None:
    """A head's rows of the output over the source; what is written has next to no weight."""
    tokens = one.query_tokens[0] if one.query_tokens else []
    begin = tokens.index("<sep>")
    shown = one.weights[0, head, begin:, : begin + 1].numpy()
    show_weights(axes, shown, colours_of(shown, highest=1.0))
    axes.set_xticks(range(begin + 1), tokens[: begin + 1], fontsize=8, rotation=90)
    rows = [f"→ {token}" for token in [*tokens[begin + 1 :], "<eos>"]]
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.tick_params(labelcolor=MUTED)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
