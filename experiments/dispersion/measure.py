"""How wide each weighting spreads at longer and longer sequences, by the recorder."""

from pathlib import Path
from typing import Any

import torch

from mha_lab import record_attention
from mha_lab.evaluation import load_trained

LENGTHS = (16, 32, 64, 128)
SAMPLES = 50
EARLY = 4  # queries that see fewer keys say nothing about spreading


def measure(run: Path) -> list[dict[str, Any]]:
    """Mean over layers and heads of the entropy, and of the weight on the first token."""
    _, parts = load_trained(run)
    return [{"lengths": f"{n}-{n}", **_at(parts, n)} for n in LENGTHS]


@torch.no_grad()
def _at(parts: Any, length: int) -> dict[str, float]:
    task = parts.task.at_lengths(min_length=length, max_length=length)
    model = parts.module.model.eval()
    with record_attention(model) as maps:
        model(*task.fixed_split("test", SAMPLES))
    entropies = torch.stack([one.scores()["entropy"].mean() for one in maps])
    first = torch.stack([one.weights[:, :, EARLY:, 0].mean() for one in maps])
    return {"entropy": float(entropies.mean()), "first_token": float(first.mean())}
