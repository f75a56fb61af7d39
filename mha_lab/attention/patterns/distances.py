"""What patterns share: how far apart queries and keys are, and that this needs one sequence."""

import torch
from jaxtyping import Int
from torch import Tensor


def distances(L: int, S: int, device: torch.device) -> Int[Tensor, "L S"]:
    """How many positions each query stands behind each key; the queries are the last L of S."""
    return torch.arange(S - L, S, device=device)[:, None] - torch.arange(S, device=device)


def refuse_cross(what: str, *, is_cross: bool) -> None:
    """Refuse a pattern between two sequences.

    Args:
        what: What refuses, for the sentence.
        is_cross: Whether keys come from another sequence.

    Raises:
        ValueError: They do.
    """
    if is_cross:
        raise ValueError(
            f"{what} has no meaning in cross-attention, where queries and keys are positions of "
            "two sequences; choose attention.cross=full (cross-attention without the pattern), "
            "model=decoder or model=encoder"
        )
