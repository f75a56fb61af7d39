"""Products of the matrices of a block."""

import torch
from torch import Tensor


class Memory:
    """Where the scores of one block lie after those of another."""

    def __init__(self, like: Tensor) -> None:
        self.all = like.new_empty(0)

    def product(self, a: Tensor, b: Tensor, scale: float = 1.0) -> Tensor:
        """The scaled product (n, h, rows, keys) of rows and keys, until the next."""
        size = a.shape[:-1].numel() * b.shape[-2]
        if len(self.all) < size:
            self.all = self.all.new_empty(size)
        return scaled_product(a, b, scale, self.all[:size])


def scaled_product(a: Tensor, b: Tensor, scale: float, out: Tensor | None = None) -> Tensor:
    """The scaled product (n, h, rows, keys) of rows and keys."""
    a, b, shape = _matrices(a), _matrices(b), (*a.shape[:-1], b.shape[-2])
    out = None if out is None else out.view(a.shape[0], *shape[-2:])
    nothing = a.new_empty(1)  # beta=0 leaves it unread
    return torch.baddbmm(nothing, a, b.transpose(1, 2), beta=0, alpha=scale, out=out).view(shape)


def add_product(total: Tensor, a: Tensor, b: Tensor, scale: float = 1.0) -> None:
    """Add the scaled product of a, turned, and b."""
    total[0].baddbmm_(_matrices(a).transpose(1, 2), _matrices(b), alpha=scale)


def turned(x: Tensor) -> Tensor:
    """(N, H, S, D) of (N, H, D, S), heads side by side as the gradients of projections want it."""
    N, H, D, S = x.shape
    turned = x.new_empty(N, S, H * D)
    for n in range(N):  # a matrix alone is turned fastest
        turned[n].copy_(x[n].view(H * D, S).t())
    return turned.view(N, S, H, D).transpose(1, 2)


def _matrices(x: Tensor) -> Tensor:
    return x.squeeze(0) if x.shape[0] == 1 else x.flatten(0, 1)
