"""What several encodings need: how far apart, and in which dtype."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode


def offsets(q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]) -> Int[Tensor, "L S"]:
    """How far after the query each key stands; negative where it stands before."""
    return k_positions - q_positions[:, None]


def distances(q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]) -> Int[Tensor, "L S"]:
    """How far apart query and key stand."""
    return offsets(q_positions, k_positions).abs()


def reach(positions: Int[Tensor, "L"]) -> int:
    """How long a sequence is that ends at the last of these ascending positions."""
    if not len(positions) or positions.is_meta or torch.compiler.is_compiling():
        return len(positions)
    return int(positions[-1]) + 1


def at_least_float32(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Half precision cannot count positions beyond a few hundred."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def start_of(positions: Int[Tensor, "L"]) -> int | None:
    """The first position, if each is one more than the last; None if not, or if nobody can tell."""
    hidden = (
        positions.is_meta
        or torch.compiler.is_compiling()
        or torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
        or torch._C._are_functorch_transforms_active()
        or get_proxy_mode() is not None
    )
    if hidden or not len(positions) or not bool((positions.diff() == 1).all()):
        return None
    return int(positions[0])


def lead_of(q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]) -> int | None:
    """How far the first query stands after the first key, where ``start_of`` knows both."""
    first, first_key = start_of(q_positions), start_of(k_positions)
    return None if first is None or first_key is None else first - first_key
