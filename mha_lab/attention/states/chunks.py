"""A sequence cut into chunks, and one matrix a chunk handed on from each to the next."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def cut(x: Float[Tensor, "N H S D"], size: int, length: int) -> Float[Tensor, "N H n C D"]:
    """Cut into as many chunks of a size as queries of a length need.

    Args:
        x: (N, H, S, D); S may differ from the length: zeros follow, or what is too much goes.
        size: C.
        length: L.

    Returns:
        (N, H, n, C, D), of which L positions are in use.
    """
    n = max(1, -(-length // size))
    padded = F.pad(x, (0, 0, 0, n * size - x.shape[2])) if x.shape[2] != n * size else x
    return padded.reshape(*x.shape[:2], n, size, x.shape[3])


def join(chunks: Float[Tensor, "N H n C D"], length: int) -> Float[Tensor, "N H L D"]:
    """Undo ``cut``."""
    return chunks.flatten(2, 3)[:, :, :length]


def states_before(
    gains: Float[Tensor, "N H n K D"], step: Callable[[Tensor, int], Tensor]
) -> Float[Tensor, "N H n K D"]:
    """The state that each chunk finds: zeros, then what the step makes of it, chunk by chunk.

    Args:
        gains: Of the shape that is wanted: one state a chunk.
        step: From the state before chunk i and i to the state after it.
    """
    state = torch.zeros_like(gains[:, :, 0])
    states = [state]
    for i in range(gains.shape[2] - 1):
        state = step(state, i)
        states.append(state)
    return torch.stack(states, 2)
