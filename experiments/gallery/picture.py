"""The same sentence under each mechanism: one map each, drawn alike."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from mha_lab import record_attention
from mha_lab.evaluation import load_trained
from mha_lab.maps.colours import colours_of, show_weights
from mha_lab.tasks.vocabulary import Vocabulary

SENTENCE = "3 1 4 1 5"
COLUMNS = 6


def draw(rows: Sequence[dict[str, Any]], runs: Path, file: Path) -> None:
    """Draw one map of each run, of the head that reads most from where the answer stands.

    Args:
        rows: Of the table, all of the task copy.
        runs: The folder of the runs.
        file: The PNG that is written.
    """
    height = -(-len(rows) // COLUMNS)
    figure, panels = plt.subplots(height, COLUMNS, figsize=(11, 2.15 * height + 0.9))
    for panel in panels.flat:
        panel.set_axis_off()
    for index, (row, panel) in enumerate(zip(rows, panels.flat, strict=False)):
        weights, tokens = best_map(runs / f"copy_{row['attention']}")
        show(panel, weights, tokens, has_queries=index % COLUMNS == 0)
        panel.set_title(f"{row['attention']}\n{row['steps']} steps", fontsize=8.5, pad=3)
    figure.suptitle(
        f"Copying {SENTENCE}: which tokens (across) each query (down) reads, "
        "in the head that reads most from where its answer stands\n"
        "dark: much, each map up to its largest; blue: below 0; hatched: exactly 0",
        fontsize=10,
    )
    figure.tight_layout(rect=(0, 0, 1, 0.985), h_pad=1.5, w_pad=0.3)
    figure.savefig(file, dpi=110, pil_kwargs={"optimize": True})
    plt.close(figure)


def best_map(folder: Path) -> tuple[np.ndarray, list[str]]:
    """The map (L, L) of one head, and the tokens on its axes."""
    module = load_trained(folder)[1].module.eval()
    source = torch.tensor([[*module.vocabulary.encode(SENTENCE.split()), Vocabulary.EOS]])
    with torch.no_grad(), record_attention(module.model) as maps:
        module.model(source, source)
    ids = next(iter(module.model.attention_axes(source, source).values()))[0][0].tolist()
    heads = torch.cat([one.weights[0] for one in maps])
    # What follows <sep> + t stands at t.
    asked = torch.arange(len(SENTENCE.split()))
    after = ids.index(Vocabulary.SEP) + asked
    read = heads[:, after, asked].sum(1) / heads[:, after].abs().sum((1, 2))
    names = ["|" if i == Vocabulary.SEP else module.vocabulary.decode([i])[0] for i in ids]
    return heads[read.argmax()].numpy(), names


def show(panel: Axes, weights: np.ndarray, tokens: Sequence[str], *, has_queries: bool) -> None:
    """One map, its largest weight as dark as can be."""
    panel.set_axis_on()
    show_weights(panel, weights, colours_of(weights))
    panel.set_aspect("equal")
    places = range(len(tokens))
    panel.set_xticks(places, tokens, fontsize=6)
    panel.set_yticks(places, tokens if has_queries else [""] * len(tokens), fontsize=6)
    panel.tick_params(length=0, pad=1)
