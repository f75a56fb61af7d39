"""Attention to a few keys of each row: what all others weigh is 0, so nothing is made of them.

For a softmax over the best scores of a row, only the search looks at all of them, block by block;
the output and the gradients are made of the few keys, which takes two products less forward and
five less backward. The weights of the few and where they are, are kept.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from mha_lab.attention.blockwise.between import Between
from mha_lab.attention.blockwise.bias import Whole
from mha_lab.attention.blockwise.chain import scores_of
from mha_lab.attention.blockwise.function import differentiable_gradients, parts_of
from mha_lab.attention.blockwise.products import Memory
from mha_lab.attention.multihead.blocks import BLOCK_ELEMENTS
from mha_lab.attention.parts import ask
from mha_lab.by_hand import is_batched

_SORTED_IN_PART = 64
"""``torch.topk`` goes once through rows of so many times k; shorter ones take it longer."""


def is_to_few(between: Between, S: int, others: list[Tensor | None]) -> bool:
    """Whether the weights are those of few keys, and what else goes into them has no gradient."""
    before, after, *of_bias = others
    few: int | None = ask(between.weighting, "most_keys", None)
    return (
        few is not None
        and 16 * few <= S
        and before is None
        and after is None
        and (between.bias is None or isinstance(between.bias, Whole))
        and not any(x is not None and x.requires_grad for x in of_bias)
    )


class ToFew(Function):
    """The heads' outputs, as ``InBlocks`` gives them."""

    @staticmethod
    def forward(
        ctx: Any, between: Between, q: Tensor, k: Tensor, v: Tensor, *others: Tensor | None
    ) -> Tensor:
        """Outputs (N, H, L, D); of the others, only a bias may be there."""
        N, H, L, _ = q.shape
        few = between.weighting.most_keys
        where = torch.empty(N, H, L, few, dtype=torch.long)
        weights = q.new_empty(N, H, L, few)
        output = v.new_empty(N, L, H, v.shape[-1]).transpose(1, 2)  # heads side by side
        memory = Memory(q)
        for block in between.cut(q, k):
            n, heads, rows, keys = block
            products = memory.product(q[n, heads, rows], k[n, heads, keys], between.factor)
            scores, *_ = scores_of(products, between, block, None, parts_of(others)[2])
            best, found = _best(scores, few)
            found += keys.start
            chosen = best.softmax(-1)
            blocked = block.of(between.blocked)
            chosen = chosen if blocked is None else chosen.masked_fill_(blocked, 0.0)
            where[n, heads, rows], weights[n, heads, rows] = found, chosen
            output[n, heads, rows] = _weighed(chosen, _taken(v[n, heads], found))
        ctx.between = between
        ctx.save_for_backward(where, weights, q, k, v, *others)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Of the few keys, unless the gradients are to have gradients, or are several."""
        where, weights, *tensors = ctx.saved_tensors
        with (
            torch.autocast(grad.device.type, enabled=False),
            torch._C.DisableTorchFunction(),  # recorders have seen the call that this belongs to
        ):
            if torch.is_grad_enabled() or is_batched(grad):
                return None, *differentiable_gradients(ctx.between, tensors, grad)
            return None, *_gradients(ctx.between, where, weights, tensors, grad)


def _gradients(
    between: Between, where: Tensor, weights: Tensor, tensors: list[Tensor], grad: Tensor
) -> tuple[Tensor | None, ...]:
    q, k, v, *others = tensors
    N, H, L, few = where.shape
    grad_q = q.new_empty(N, L, H, q.shape[-1]).transpose(1, 2)
    grad_k, grad_v = (x.new_zeros(x.shape) for x in (k, v))
    rows = max(1, BLOCK_ELEMENTS // (few * v.shape[-1]))
    for n in range(N):
        for h in range(H):
            for r in range(0, L, rows):
                at = slice(n, n + 1), slice(h, h + 1), slice(r, r + rows)
                found, chosen, of_q, of_grad = where[at], weights[at], q[at], grad[at]
                keys, values = _taken(k[at[:2]], found), _taken(v[at[:2]], found)
                of_scores = torch._softmax_backward_data(
                    _fit(of_grad, values), chosen, -1, chosen.dtype
                )
                if between.softcap is not None:
                    squashed = (_fit(of_q, keys) * between.factor).sigmoid_()
                    of_scores = torch.ops.aten.sigmoid_backward(of_scores, squashed)
                of_scores = of_scores * (between.factor * between.rise)
                grad_q[at] = _weighed(of_scores, keys)
                _add(grad_k[n, h], found, of_scores, of_q)
                _add(grad_v[n, h], found, chosen, of_grad)
    return grad_q, grad_k, grad_v, *(None for _ in others)


def _best(scores: Tensor, few: int) -> tuple[Tensor, Tensor]:
    """The best scores of each row, and where they are; -inf may be anywhere."""
    S = scores.shape[-1]
    lacking = _SORTED_IN_PART * few - S
    lacking = lacking if lacking <= S else few - S  # a block may see fewer keys than the few
    if lacking > 0:
        scores = F.pad(scores, (0, lacking), value=-torch.inf)
    best, where = scores.topk(few, dim=-1, sorted=False)
    return best, where.clamp_(max=S - 1)


def _taken(x: Tensor, where: Tensor) -> Tensor:
    """Some rows of (n, h, S, D) for each query: (n, h, rows, few, D)."""
    n, h, S, D = x.shape
    first = torch.arange(n * h).mul_(S).view(n, h, 1, 1)
    return x.reshape(-1, D).index_select(0, (where + first).flatten()).view(*where.shape, D)


def _fit(x: Tensor, taken: Tensor) -> Tensor:
    """Products of each query's vector (n, h, rows, D) with its few."""
    return (x.unsqueeze(-2) * taken).sum(-1)


def _weighed(weights: Tensor, taken: Tensor) -> Tensor:
    """Each query's few, times their weights, in sum: (n, h, rows, D)."""
    return (weights.unsqueeze(-1) * taken).sum(-2)


def _add(total: Tensor, where: Tensor, weights: Tensor, x: Tensor) -> None:
    """Add to some rows of (S, D) each query's vector times a weight."""
    total.index_add_(0, where.flatten(), (weights.unsqueeze(-1) * x.unsqueeze(-2)).flatten(0, -2))
