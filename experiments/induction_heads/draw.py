"""The figure: loss and induction score over training; one head's map before, during and after."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mha_lab.maps.colours import colours_of, show_weights
from mha_lab.reporting.drawing import INK, MUTED, SERIES
from mha_lab.reporting.run_files import read_curves
from mha_lab.studies.measuring import load
from mha_lab.studies.study import Study
from mha_lab.tensorboard.reader import read_attention
from mha_lab.tensorboard.stored_map import StoredMap
from mha_lab.view.gallery import Gallery

_measure = load(Path(__file__).with_name("measure.py"))
halfway, per_head, scores = _measure.halfway, _measure.per_head, _measure.scores


def draw(study: Study, rows: list[dict[str, Any]]) -> Figure:
    """Above the curves of both depths, every seed a line; below the maps of two layers, seed 0."""
    figure = Figure(figsize=(9.2, 6.4), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1, 1.1))
    for i, (axes, layers) in enumerate(zip(above.subplots(1, 2), ("one", "two"), strict=True)):
        curves(study, axes, layers, is_first=i == 0)
    maps(study, below)
    return figure


def curves(study: Study, axes: Any, layers: str, *, is_first: bool) -> None:
    """Loss on the left axis, induction score on the right one."""
    other = axes.twinx()
    for job in study.jobs:
        if job.levels["layers"] != layers:
            continue
        steps, loss = read_curves(study.runs / job.name)["val/loss"]
        at, induction, _ = scores(study.runs / job.name)
        axes.plot(steps, loss, color=SERIES[0], lw=1.3, alpha=0.8)
        other.plot(at, induction, color=SERIES[1], lw=1.3, alpha=0.8)
    axes.set_ylim(bottom=0)
    other.set_ylim(0, 1)
    other.grid(visible=False)
    axes.set_title(f"{layers} layer{'s' if layers == 'two' else ''}")
    axes.set_xlabel("step")
    if is_first:
        axes.set_ylabel("validation loss", color=SERIES[0])
    else:
        other.set_ylabel("induction score, best head", color=SERIES[1])


def maps(study: Study, figure: Any) -> None:
    """The head that ends as the best induction head, at the first, the middle and the last step."""
    run = two_layers(study)
    stored = read_attention(run)
    at, induction, _ = scores(run)
    last = [one for one in stored if one.step == at[-1]]
    name = best_layer(last)
    head = int(np.argmax(per_head(next(one for one in last if one.name == name), "induction")))
    moments = {"before": at[0], "during": middle(at, induction), "after": at[-1]}
    for axes, (moment, step) in zip(figure.subplots(1, 3), moments.items(), strict=True):
        one = next(one for one in stored if one.name == name and one.step == step)
        draw_map(axes, one, head)
        score = per_head(one, "induction")[head]
        axes.set_title(f"{moment}: step {step:.0f}, score {score:.2f}")
    title = f"{name}, head {head}: each row looks at what followed its symbol before\n"
    figure.suptitle(title, fontsize=10.5, color=INK, x=0.01, ha="left", linespacing=0.6)


def best_layer(maps: list[StoredMap]) -> str:
    """The module with the best induction head."""
    return max(maps, key=lambda one: per_head(one, "induction").max()).name


def middle(at: np.ndarray, induction: np.ndarray) -> float:
    """The step in the middle of the rise; of a single one that one."""
    return float(halfway(at, induction)) if len(at) > 1 else float(at[0])


def draw_map(axes: Any, one: StoredMap, head: int) -> None:
    """One head's map of the first sample, with its tokens."""
    tokens = one.query_tokens[0] if one.query_tokens else []
    tokens = [token for token in tokens if token != "<eos>"]
    shown = one.weights[0, head][: len(tokens), : len(tokens)]
    show_weights(axes, shown, colours_of(shown, highest=1.0))
    axes.set_aspect("equal")
    axes.set_xticks(range(len(tokens)), tokens, fontsize=6.5, rotation=90)
    axes.set_yticks(range(len(tokens)), tokens, fontsize=6.5)
    axes.tick_params(labelcolor=MUTED)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def two_layers(study: Study) -> Path:
    """The run that is shown: two layers, the first seed."""
    job = next(job for job in study.jobs if job.levels["layers"] == "two")
    return study.runs / job.name


def attach(study: Study, rows: list[dict[str, Any]]) -> dict[str, bytes]:
    """The same run as an interactive page: all heads of both layers, at some steps of the way."""
    run = two_layers(study)
    stored = read_attention(run)
    at, induction, _ = scores(run)
    center = middle(at, induction)
    wanted = np.quantile(at, (0, 0.25, 0.5, 0.75, 1), method="nearest").tolist()
    near = [step for step in at if abs(step - center) <= 50]
    shown = sorted({*wanted, *near})
    page = Gallery(
        [one for one in stored if one.step in shown],
        title="Induction heads form: two layers, seed 0",
    ).save(run / "induction_heads.html", samples=[0], layer=best_layer(stored))
    return {page.name: page.read_bytes()}
