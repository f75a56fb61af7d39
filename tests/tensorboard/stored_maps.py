"""Maps and runs that the tests of this folder share."""

import dataclasses
import math
from pathlib import Path

import torch
from torch.utils.tensorboard import SummaryWriter

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.tensorboard.writer import write_attention

N, H, L, S = 2, 3, 5, 7  # distinct primes: swapped axes fail
HOSTILE = '<img src=x onerror="window.parent.hacked=1">'


def make_map(
    name: str = "encoder.layers.0.self_attn",
    *,
    shape: tuple[int, int, int, int] = (N, H, L, S),
    kind: str = "cross",
    tokens: bool = True,
    seed: int = 0,
) -> AttentionMap:
    """A random distribution, blocked above the diagonal when it is "masked"."""
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 2
    if kind == "masked":
        scores = scores.masked_fill(torch.ones(shape[2:]).triu(1).bool(), -math.inf)
    query, key = (
        [[f"{letter}{n}.{i}" for i in range(size)] for n in range(shape[0])]
        for letter, size in (("q", shape[2]), ("k", shape[3]))
    )
    return AttentionMap(
        name=name,
        weights=scores.softmax(-1),
        kind=kind,
        query_tokens=query if tokens else None,
        key_tokens=(key if kind == "cross" else query) if tokens else None,
    )


def with_tokens(one: AttentionMap, query: list[str], key: list[str]) -> AttentionMap:
    samples = one.weights.shape[0]
    return dataclasses.replace(one, query_tokens=[query] * samples, key_tokens=[key] * samples)


def write_run(folder: Path, maps_of_steps: dict[int, list[AttentionMap]], **options) -> Path:
    """One event file with the maps of each step; returns the file."""
    with SummaryWriter(str(folder)) as writer:
        for step, maps in maps_of_steps.items():
            write_attention(writer, maps, step, **options)
    return max(folder.glob("*tfevents*"), key=lambda path: path.stat().st_mtime_ns)
