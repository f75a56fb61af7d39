"""A bias that follows from the offset alone: one number for each diagonal of (L, S).

Where positions follow one another, there are L + S - 1 offsets, so a bias is made for as many and
laid out; its gradient is one sum a diagonal, where indexing would add up L·S numbers one by one.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd import Function

from mha_lab.by_hand import is_batched, on_diagonals, sums_of_diagonals
from mha_lab.positions.distances import lead_of, offsets

_ROWS = 32
"""How many rows are made or summed at a time, in memory that stays in the cache."""


class OffsetBias(nn.Module):
    """An encoding whose bias follows from how far the key stands after the query; a base class."""

    acts_on = "scores"
    is_relative = True

    def of_offsets(self, offset: Int[Tensor, "..."]) -> Float[Tensor, "H ..."]:
        """What is added to the score of a key that stands so far after the query.

        Args:
            offset: of any shape (...).

        Returns:
            (H, ...); -inf blocks.
        """
        raise NotImplementedError

    def bias(
        self, q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]
    ) -> Float[Tensor, "H L S"]:
        """What is added to the scores.

        Args:
            q_positions: (L,).
            k_positions: (S,).

        Returns:
            (H, L, S).
        """
        return by_offset(self.of_offsets, q_positions, k_positions)

    def diagonals(
        self, q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]
    ) -> Float[Tensor, "H M"] | None:
        """The same, once for each diagonal; the arguments are those of ``bias``.

        Args:
            q_positions: (L,).
            k_positions: (S,).

        Returns:
            (H, L + S - 1), or None where positions do not follow one another.
        """
        return of_diagonals(self.of_offsets, q_positions, k_positions)


def by_offset(
    make: Callable[[Tensor], Tensor], q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]
) -> Float[Tensor, "H L S"]:
    """What follows from how far the key stands after the query.

    Args:
        make: From offsets of any shape (...) to (H, ...).
        q_positions: (L,).
        k_positions: (S,).
    """
    distinct = of_diagonals(make, q_positions, k_positions)
    if distinct is None:
        return make(offsets(q_positions, k_positions))
    laid_out: Tensor = _LaidOut.apply(distinct, len(q_positions))  # type: ignore[no-untyped-call]
    return laid_out


def of_diagonals(
    make: Callable[[Tensor], Tensor], q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]
) -> Float[Tensor, "H M"] | None:
    """The same, one number for each of the L + S - 1 offsets, the lowest first.

    Args:
        make: From offsets of any shape (...) to (H, ...).
        q_positions: (L,).
        k_positions: (S,).

    Returns:
        Number j - i + L - 1 is that of query i and key j; None where positions do not follow one
        another.
    """
    ahead = lead_of(q_positions, k_positions)
    if ahead is None:
        return None
    L, S = len(q_positions), len(k_positions)
    lowest = -ahead - (L - 1)
    return make(torch.arange(lowest, lowest + L + S - 1, device=q_positions.device))


class _LaidOut(Function):
    """Number j - i + L - 1 of (H, L + S - 1) for query i and key j: (H, L, S)."""

    @staticmethod
    def forward(ctx: Any, distinct: Tensor, L: int) -> Tensor:
        S = distinct.shape[-1] - L + 1
        laid_out = distinct.new_empty(len(distinct), L, S)
        for end in range(L, 0, -_ROWS):
            start = max(0, end - _ROWS)
            of_rows = distinct[:, L - end : L - start + S - 1]
            laid_out[:, start:end] = on_diagonals(of_rows, end - start)
        return laid_out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        if is_batched(grad):
            L, S = grad.shape[-2:]
            sums = [grad.diagonal(o, -2, -1).sum(-1) for o in range(1 - L, S)]
            return torch.stack(sums, -1), None
        summed: Tensor = _Summed.apply(grad)  # type: ignore[no-untyped-call]
        return summed, None


class _Summed(Function):
    """The sums of the diagonals of (H, L, S), (H, L + S - 1): the gradient of the other."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        H, L, S = x.shape
        ctx.L = L
        summed = x.new_zeros(H, L + S - 1)
        turned: Tensor | None = None
        for start in range(0, L, _ROWS):
            part = x[:, start : start + _ROWS]
            sums, turned = sums_of_diagonals(part, turned)
            end = L - start + S - 1
            summed[:, end - sums.shape[1] : end] += sums
        return summed

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor]:
        laid_out: Tensor = _LaidOut.apply(grad, ctx.L)  # type: ignore[no-untyped-call]
        return (laid_out,)
