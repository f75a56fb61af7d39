"""Attention rollout [1]_: how much of each input reaches a position through several layers.

Heads are averaged, and each layer passes half of what it has on as it is, through its residual
connection: A' = (A + 1) / 2. What reaches layer l from the inputs is A'_l · A'_(l-1) · ... · A'_1.

.. [1] Abnar and Zuidema, "Quantifying Attention Flow in Transformers", 2020, section 3.
   https://arxiv.org/abs/2005.00928
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import torch

from mha_lab.maps.attention_map import AttentionMap


def attention_rollout(maps: Sequence[AttentionMap], *, residual: float = 0.5) -> list[AttentionMap]:
    """Roll attention out over the layers of one sequence.

    Args:
        maps: Whole maps of one stack in the order of its layers, of one forward call, each
            (N, H, L, L) of the same samples:
            ``[one for one in maps if one.name.startswith("encoder.")]``.
        residual: The share that passes each layer as it is; the paper's is 0.5.

    Returns:
        One map (N, 1, L, L) a layer, its heads averaged: row i of the last says how much each
        input counts for position i after all layers. Rows sum to 1, or less where a query sees
        no key.

    Raises:
        TypeError: If residual is no number.
        ValueError: If there are no maps; if one is pooled, holds no weights, is cross-attention, or
            of another size or stack than the first; or if residual is not in [0, 1].
    """
    _check(maps, residual)
    first = maps[0].weights
    dtype = torch.promote_types(first.dtype, torch.float32)
    same = torch.eye(first.shape[2], dtype=dtype, device=first.device)
    reached, rolled = same.expand(len(first), 1, -1, -1), []
    for one in maps:
        layer = one.weights.to(same).mean(1, keepdim=True)
        reached = ((1 - residual) * layer + residual * same) @ reached
        rolled.append(
            replace(
                one,
                weights=reached,
                heads=None,
                whole_scores=None,
                whole=None,
                key_heads=None,
                value_norms=None,
                weighted=None,
                measure="rollout",
            )
        )
    return rolled


def _check(maps: Sequence[AttentionMap], residual: float) -> None:
    """Refuse what cannot be rolled out, or would mean nothing."""
    if isinstance(residual, bool) or not isinstance(residual, int | float):
        raise TypeError(f"residual={residual!r} must be a number in [0, 1]")
    if not 0 <= residual <= 1:
        raise ValueError(f"residual={residual} must be in [0, 1]")
    if not maps:
        raise ValueError("maps is empty: there is nothing to roll out")
    first = maps[0]
    for one in maps:
        n, _, rows, columns = one.shape
        if one.measure != "weights":
            raise ValueError(f"{one.name!r} is {one.measure}; rollout needs the weights themselves")
        if one.is_pooled:
            raise ValueError(f"{one.name!r} is pooled; rollout needs whole maps (max_size=None)")
        if one.kind == "cross" or rows != columns or (n, rows) != (first.shape[0], first.shape[2]):
            raise ValueError(
                f"{one.name!r} is {one.kind} attention of shape {one.shape}; "
                f"rollout needs one sequence, as {first.name!r} of {first.shape} has"
            )
        stack, other = _stack(first.name), _stack(one.name)
        if None not in (stack, other) and stack != other:
            raise ValueError(
                f"{first.name!r} and {one.name!r} are of two stacks; roll out one, as with "
                f"maps.rollout({f'{stack}.*'!r})"
            )


def _stack(name: str) -> str | None:
    """What stands before the number of a layer: "encoder.layers"; None where there is none."""
    found = re.search(r"(^|\.)\d+(?=\.|#|$)", name)
    return name[: found.start()] if found else None
