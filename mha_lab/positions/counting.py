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

    def widened(self, block: Any, keys: int) -> Any:
        """The block with all keys up to its queries: they count, also where none is attended."""
        stop = max(block.keys.stop, min(keys, block.rows.stop + self.ahead))
        return block._replace(keys=slice(block.keys.start, stop))

    def of(self, products: Tensor, block: Any, of_whole: Tensor) -> Tensor:
        """The bias of a block."""
        gates = (products * self.scale).sigmoid().tril(self._before(block))
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
        gates = gates.sigmoid().tril_(self._before(block))
        gates = _in_chunks(F.pad(gates, (0, -keys % _CHUNK)) if keys % _CHUNK else gates)
        after = _sums_after(gates.sum(-1))
        # Chunks that begin with all rows at the last position, and end so.
        done = int((after.amin((0, 1, 2)) >= last).sum())
        gates, after, first = gates[..., done:, :], after[..., done:], done * _CHUNK
        position = (gates @ _triangle(gates)).add_(after[..., None]).flatten(-2)
        position = position[..., : keys - first].clamp_(max=last)
        below = position.long()
        beyond = position.frac_()
        # Looked up together, as the two parts of one number: a lookup takes as long for both.
        pairs = part.new_zeros(*part.shape, 2)
        pairs[..., 0] = part
        torch.sub(part[..., 1:], part[..., :-1], out=pairs[..., :-1, 1])
        of_below, steps = _apart(torch.view_as_complex(pairs).gather(-1, below))
        products[..., :first] += part[..., -1:]
        products[..., first:] += torch.addcmul(of_below, beyond, steps)
        return Counted(first, gates, below, beyond, steps)

    def back(self, grad: Tensor, kept: Counted, block: Any, total: Tensor | None) -> None:
        """Through the vectors to the positions, and through the gates to the products."""
        first, gates, below, beyond, steps = kept
        of_bias = grad[..., first:]
        if total is not None:
            part = total[block.n, block.heads, block.rows]
            both = of_bias.new_empty(*of_bias.shape, 2)
            both[..., 0] = of_bias
            torch.mul(of_bias, beyond, out=both[..., 1])
            both = torch.view_as_complex(both)
            sums = torch.zeros_like(part, dtype=both.dtype).scatter_add_(-1, below, both)
            of_whole, of_steps = _apart(sums)
            part += of_whole
            part -= of_steps
            part[..., 1:] += of_steps[..., :-1]
            part[..., -1] += grad[..., :first].sum(-1)
        of_position = of_bias * steps
        lacking = gates[0, 0, 0].numel() - steps.shape[-1]
        of_position = _in_chunks(F.pad(of_position, (0, lacking)) if lacking else of_position)
        before = of_position.sum(-1)
        before = before.cumsum(-1) - before
        of_gates = (of_position @ _triangle(gates).t()).add_(before[..., None])
        of_products = torch.ops.aten.sigmoid_backward(of_gates, gates).flatten(-2)
        of_bias.add_(of_products[..., : of_bias.shape[-1]], alpha=self.scale)

    def _before(self, block: Any) -> int:
        """How many keys of a block the first query sees besides itself: later ones do not count."""
        before: int = block.rows.start + self.ahead - block.keys.start
        return before


def _in_chunks(x: Tensor) -> Tensor:
    return x.view(*x.shape[:-1], -1, _CHUNK)


def _apart(x: Tensor) -> tuple[Tensor, Tensor]:
    """The two parts of complex numbers."""
    first, second = torch.view_as_real(x).unbind(-1)
    return first, second


def _sums_after(sums: Tensor) -> Tensor:
    """For each chunk the sum of all chunks after it."""
    return sums.flip(-1).cumsum(-1).flip(-1) - sums


def _triangle(like: Tensor) -> Tensor:
    """Multiplied by it, a chunk becomes its sums from the right."""
    return like.new_ones(_CHUNK, _CHUNK).tril()
