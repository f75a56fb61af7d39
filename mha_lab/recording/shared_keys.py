"""Which heads read the same keys, told by the keys themselves.

Grouped-query attention [1]_ has fewer heads of keys than of queries. Much code repeats the keys
before it calls attention (``repeat_kv`` of Hugging Face transformers), and then only the numbers
tell: heads that share keys have the same ones, bit for bit.

.. [1] Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
   Checkpoints", 2023. https://arxiv.org/abs/2305.13245
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from mha_lab.recording.transforms import is_transformed


def shared_keys(keys: Float[Tensor, "N H S D"]) -> list[int] | None:
    """Which head of keys each head reads.

    Args:
        keys: Projected keys of every query head, or their values where no keys are seen.

    Returns:
        H numbers, counted from 0 in the order of the heads; None where each head has keys of its
        own, or nothing can be told (no keys, all of them 0, or a transform maps over them).
    """
    heads = keys.shape[1]
    if heads < 2 or keys.numel() == 0 or is_transformed(keys):
        return None
    if keys.is_complex():
        keys = torch.view_as_real(keys).flatten(-2)
    # One row a head, exact whatever the order of its terms: nearly always it tells them apart.
    rows = keys[0].amax(1)
    _, alike = torch.unique(rows, dim=0, return_inverse=True)
    first: dict[int, int] = {}
    leaders = [first.setdefault(one, head) for head, one in enumerate(alike.tolist())]
    if len(first) == heads or not keys.any():
        return None
    if not all(torch.equal(keys[:, head], keys[:, leaders[head]]) for head in range(heads)):
        return None
    numbers = {leader: number for number, leader in enumerate(first.values())}
    return [numbers[leader] for leader in leaders]
