"""CoPE's bias of one block of scores, and its gradients, written out.

A row's positions are sums of its gates from the right. So left of some key, all rows of a block are
at the last position: there the bias is one number a row, and no gate has a gradient.
Sums run over chunks of a few keys, as products with a triangular matrix.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

_CHUNK = 32


class Counted(NamedTuple):
    """What the way back needs of a block, for the keys at which rows are not all at the last one.

    Attributes:
        first: The first of these keys.
        gates: (n, h, rows, keys), filled up with zeros to whole chunks.
        below: The whole position below, (n, h, rows, keys).
        beyond: How far the position is beyond it.
        steps: From the score of that position to that of the next.
    """

    first: int
    gates: Tensor
    below: Tensor
    beyond: Tensor
    steps: Tensor


class CountedBias(NamedTuple):
    """Adds q·e[p], p counted by gates.

    Attributes:
        tensors: The products of queries and vectors of whole positions, (N, H, L, P).
        ahead: How far the first query stands after the first key.
        scale: What products of queries and keys have still to be multiplied by.
    """

    tensors: tuple[Tensor, ...]
    ahead: int
    scale: float

    def of(self, products: Tensor, block: Any, of_whole: Tensor) -> Tensor:
        """The bias of a block."""
        gates = self._without_later((products * self.scale).sigmoid(), block)
        position = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=of_whole.shape[-1] - 1)
        part = of_whole[block.n, block.heads, block.rows]
        below = position.detach().long()
        above = (below + 1).clamp_(max=of_whole.shape[-1] - 1)
        return torch.lerp(part.gather(-1, below), part.gather(-1, above), position - below)

    def add(self, products: Tensor, block: Any, of_whole: Tensor) -> Counted:
        """Add it in place."""
        part = of_whole[block.n, block.heads, block.rows]
        keys, last = products.shape[-1], part.shape[-1] - 1
        gates = products * self.scale if self.scale != 1 else products
        gates = self._without_later(gates.sigmoid(), block)
        gates = _in_chunks(F.pad(gates, (0, -keys % _CHUNK)))
        after = _sums_after(gates.sum(-1))
        # Chunks that begin with all rows at the last position, and end so.
        done = int((after.amin((0, 1, 2)) >= last).sum())
        gates, after, first = gates[..., done:, :], after[..., done:], done * _CHUNK
        position = (gates @ _triangle(gates)).add_(after[..., None]).flatten(-2)
        position = position[..., : keys - first].clamp_(max=last)
        below = position.long()
        beyond = position.sub_(below)
        step = F.pad(part.diff(dim=-1), (0, 1))
        steps = step.gather(-1, below)
        products[..., :first] += part[..., -1:]
        products[..., first:] += part.gather(-1, below).addcmul_(beyond, steps)
        return Counted(first, gates, below, beyond, steps)

    def back(self, grad: Tensor, kept: Counted, block: Any, total: Tensor | None) -> None:
        """Through the vectors to the positions, and through the gates to the products."""
        first, gates, below, beyond, steps = kept
        of_bias = grad[..., first:]
        if total is not None:
            part = total[block.n, block.heads, block.rows]
            further = of_bias * beyond
            of_next = torch.zeros_like(part).scatter_add_(-1, below, further)
            part.scatter_add_(-1, below, of_bias - further)
            part[..., 1:] += of_next[..., :-1]
            part[..., -1] += grad[..., :first].sum(-1)
        of_position = F.pad(of_bias * steps, (0, gates[0, 0, 0].numel() - steps.shape[-1]))
        of_position = _in_chunks(of_position)
        before = of_position.sum(-1)
        before = before.cumsum(-1) - before
        of_gates = (of_position @ _triangle(gates).t()).add_(before[..., None])
        of_products = torch.ops.aten.sigmoid_backward(of_gates, gates).flatten(-2)
        of_bias.add_(of_products[..., : of_bias.shape[-1]], alpha=self.scale)

    def _without_later(self, gates: Tensor, block: Any) -> Tensor:
        """Keys after the query do not count."""
        return gates.tril(block.rows.start + self.ahead - block.keys.start)


def _in_chunks(x: Tensor) -> Tensor:
    return x.view(*x.shape[:-1], -1, _CHUNK)


def _sums_after(sums: Tensor) -> Tensor:
    """For each chunk the sum of all chunks after it."""
    return sums.flip(-1).cumsum(-1).flip(-1) - sums


def _triangle(like: Tensor) -> Tensor:
    """Multiplied by it, a chunk becomes its sums from the right."""
    return like.new_ones(_CHUNK, _CHUNK).tril()
