"""Where attention maps are logged: TensorBoard, Weights & Biases, MLflow, or files.

Each logger is known by what it can do, not by its class, so that none has to be installed and both
packages of Lightning are served.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from tensorboard.compat.proto.summary_pb2 import Summary

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.maps.pictures import draw_heads, draw_scores
from mha_lab.maps.raster import Raster
from mha_lab.maps.words import described
from mha_lab.tensorboard.writer import add_summary, write_attention


@dataclass
class Snapshot:
    """What is logged at one step.

    Attributes:
        maps: The maps, on the CPU.
        step: The number of optimizer steps done before they were recorded.
        prefix: What tags begin with.
        with_scores: Whether to log scores.
        with_scalars: Whether TensorBoard is given them as scalars too.
        with_images: Whether to log pictures.
    """

    maps: Sequence[AttentionMap]
    step: int
    prefix: str
    with_scores: bool
    with_scalars: bool
    with_images: bool

    def by_value(self) -> Snapshot:
        """The same with value-weighted maps, of those whose values were recorded."""
        maps = [one.value_weighted() for one in self.maps if one.value_norms is not None]
        return replace(self, maps=maps, prefix=f"{self.prefix}_by_value", with_scores=False)

    @cached_property
    def scores(self) -> dict[str, dict[str, list[float]]]:
        """One number a head, by map and score."""
        if not self.with_scores:
            return {}
        return {
            one.name: {name: values.tolist() for name, values in one.scores().items()}
            for one in self.maps
        }

    @cached_property
    def pictures(self) -> dict[str, Raster]:
        """The pictures, by tag: of the maps, and of their scores."""
        if not self.with_images:
            return {}
        pictures = {}
        for one in self.maps:
            for i, sample in enumerate(one.samples):
                tag = f"{self.prefix}_maps/{one.name}"
                tag += f"/sample_{sample}" if len(one.samples) > 1 else ""
                title = f"{described(one)} · sample {sample} · step {self.step}"
                pictures[tag] = draw_heads(one, i, title)
        if any(self.scores.values()):
            title = f"scores of every head · step {self.step}"
            pictures[f"{self.prefix}_scores/heads"] = draw_scores(self.scores, title)
        return pictures

    def numbers(self) -> Iterator[tuple[str, str, str, float]]:
        """Each score as (map, score, head, number)."""
        for one in self.maps:
            heads = ["mean"] if one.heads is None else [str(head) for head in one.heads]
            for score, values in self.scores.get(one.name, {}).items():
                for head, value in zip(heads, values, strict=True):
                    yield one.name, score, head, value

    def metrics(self) -> dict[str, float]:
        """Each score by tag."""
        return {
            f"{self.prefix}_{score}/{name}/head_{head}": value
            for name, score, head, value in self.numbers()
        }


Destination = Callable[[Snapshot], None]


def destinations(loggers: Sequence[Any], folder: Path | None) -> list[Destination]:
    """Find how to log to each of these loggers.

    Args:
        loggers: The trainer's.
        folder: Where to put files when no logger can show pictures; None in a trial run
            (``fast_dev_run``), of which nothing is kept.

    Returns:
        What to call with a snapshot.
    """
    if folder is None:  # the loggers are dummies, which seem to have every method
        return []
    found: list[Destination] = []
    for logger in loggers:
        experiment = getattr(logger, "experiment", None)
        if hasattr(experiment, "add_image"):
            found.append(partial(_to_tensorboard, experiment))
        elif hasattr(logger, "log_image"):
            found.append(partial(_to_wandb, logger))
        elif hasattr(experiment, "log_image") and hasattr(logger, "run_id"):
            found.append(partial(_to_mlflow, logger))
    if not found:
        found.append(partial(_to_files, folder))
    return found


def _to_tensorboard(writer: Any, snapshot: Snapshot) -> None:
    """Tensors for the Attention tab, with the scores; pictures for the tab that everyone has."""
    write_attention(
        writer, snapshot.maps, snapshot.step, prefix=snapshot.prefix, scores=snapshot.scores
    )
    summary = Summary()
    for tag, picture in snapshot.pictures.items():
        height, width = picture.pixels.shape
        image = Summary.Image(
            height=height, width=width, colorspace=3, encoded_image_string=picture.png()
        )
        summary.value.add(tag=tag, image=image)
    for tag, value in snapshot.metrics().items() if snapshot.with_scalars else ():
        summary.value.add(tag=tag, simple_value=value)
    if summary.value:
        add_summary(writer, summary, snapshot.step)


def _to_wandb(logger: Any, snapshot: Snapshot) -> None:
    """Pictures and scores, through the logger's own calls."""
    for tag, picture in snapshot.pictures.items():
        logger.log_image(key=tag, images=[picture.rgb()], step=snapshot.step)
    if metrics := snapshot.metrics():
        logger.log_metrics(metrics, step=snapshot.step)


def _to_mlflow(logger: Any, snapshot: Snapshot) -> None:
    """Pictures as artifacts of the run, a file a step; scores as metrics."""

    def allowed(name: str) -> str:
        return re.sub(r"[^\w\-./ ]", "-", name)

    for tag, picture in snapshot.pictures.items():
        name = allowed(f"{tag}/step_{snapshot.step:08d}.png")
        logger.experiment.log_image(logger.run_id, picture.rgb(), artifact_file=name)
    if metrics := snapshot.metrics():
        metrics = {allowed(name): value for name, value in metrics.items()}
        logger.log_metrics(metrics, step=snapshot.step)


def _to_files(folder: Path, snapshot: Snapshot) -> None:
    """A folder a step with pictures and weights (float16), and one table of scores."""
    folder = folder / snapshot.prefix
    of_step = folder / f"step_{snapshot.step:08d}"
    of_step.mkdir(parents=True, exist_ok=True)
    for tag, picture in snapshot.pictures.items():
        name = tag.partition("/")[2].replace("/", ".")
        (of_step / f"{name}.png").write_bytes(picture.png())
    for one in snapshot.maps:
        name = one.name.replace("/", ".")
        replace(one, weights=one.weights.to(torch.float16)).save(of_step / f"{name}.npz")
    if snapshot.with_scores:
        table = folder / "scores.csv"
        is_new = not table.exists()
        with table.open("a", newline="") as file:
            rows = csv.writer(file)
            if is_new:
                rows.writerow(["step", "map", "score", "head", "value"])
            rows.writerows([snapshot.step, *numbers] for numbers in snapshot.numbers())


def on_cpu(one: AttentionMap) -> AttentionMap:
    """The same map, its weights on the CPU."""
    scores = one.whole_scores and {name: one.whole_scores[name].cpu() for name in one.whole_scores}
    whole = None if one.whole is None else one.whole.cpu()
    norms = None if one.value_norms is None else one.value_norms.cpu()
    weighted = None if one.weighted is None else one.weighted.cpu()
    return replace(
        one,
        weights=one.weights.cpu(),
        whole_scores=scores,
        whole=whole,
        value_norms=norms,
        weighted=weighted,
    )
