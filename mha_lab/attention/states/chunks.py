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
    step: Callable[..., Tensor], *of_chunks: Float[Tensor, "N H n ..."]
) -> Float[Tensor, "N H n K D"]:
    """The state that each chunk finds: zeros, then what the step makes of it, chunk by chunk.

    Args:
        step: From a state and what belongs to a chunk to the state after it.
        of_chunks: What belongs to each chunk; the last has the shape that is wanted.
    """
    state = torch.zeros_like(of_chunks[-1][:, :, 0])
    states = [state]
    # Taken apart once: chunks indexed one by one would each have a gradient as long as all.
    for chunk in zip(*(x[:, :, :-1].unbind(2) for x in of_chunks), strict=True):
        state = step(state, *chunk)
        states.append(state)
    return torch.stack(states, 2)
