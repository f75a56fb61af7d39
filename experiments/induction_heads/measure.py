"""Loss, induction score and previous-token score over a training, from the run's own files."""

from pathlib import Path

import numpy as np

from mha_lab.reporting.run_files import read_curves
from mha_lab.tensorboard.reader import read_attention
from mha_lab.tensorboard.stored_map import StoredMap


def measure(run: Path) -> list[dict[str, float]]:
    """The last values, and how loss and induction score move together."""
    steps, loss = read_curves(run)["val/loss"]
    at, induction, previous = scores(run)
    loss = np.interp(at, steps, loss)
    row = {
        "loss": float(loss[-1]),
        "induction": float(induction[-1]),
        "previous_token": float(previous[-1]),
    }
    if len(at) > 2:  # else there is nothing that could move together
        row["together"] = float(np.corrcoef(loss, induction)[0, 1])
        row["apart"] = float(abs(halfway(at, loss) - halfway(at, induction)))
    return [row]


def scores(run: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps; of all heads the best induction score; of the first layer the best previous-token."""
    stored = read_attention(run)
    steps = sorted({one.step for one in stored})
    first = min(one.name for one in stored)
    induction = [best(stored, step, "induction") for step in steps]
    previous = [best(stored, step, "previous_token", first) for step in steps]
    return np.array(steps, dtype=float), np.array(induction), np.array(previous)


def best(stored: list[StoredMap], step: int, score: str, name: str = "") -> float:
    """The best head's score at a step, in one module or in all."""
    maps = [one for one in stored if one.step == step and name in ("", one.name)]
    return max(float(per_head(one, score).max()) for one in maps)


def per_head(one: StoredMap, score: str) -> np.ndarray:
    """(H,): the mean over samples."""
    values = one.scores[score]
    return values.mean(0) if values.ndim == 2 else values


def halfway(steps: np.ndarray, values: np.ndarray) -> float:
    """The step at which half of the way from the first value to the last is behind."""
    way = (values - values[0]) / (values[-1] - values[0])
    return float(steps[int(np.argmax(way >= 0.5))])
