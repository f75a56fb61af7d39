"""The heads' outputs block by block, and their gradients, for which each block is made again."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from mha_lab.attention.blockwise import chain
from mha_lab.attention.blockwise.between import Between, weights_of
from mha_lab.attention.blockwise.block import Block
from mha_lab.attention.blockwise.mixed import maps_of
from mha_lab.attention.blockwise.products import Memory, add_product, scaled_product, turned
from mha_lab.attention.parts import ask
from mha_lab.by_hand import is_batched


class InBlocks(Function):
    """The heads' outputs from queries, keys, values, what mixes heads or maps, and a bias."""

    @staticmethod
    def forward(
        ctx: Any, between: Between, q: Tensor, k: Tensor, v: Tensor, *others: Tensor | None
    ) -> Tensor:
        """Outputs (N, H, L, D); the others: what mixes before and after, and the bias's."""
        N, H, L, _ = q.shape
        finds = any(ask(between.weighting, name, None) for name in ("find", "find_and_weigh"))
        found = q.new_empty(N, H, L, 1) if finds else None
        output = v.new_empty(N, L, *v.shape[1::2]).transpose(1, 2)  # heads side by side
        memory = Memory(q)
        before, after, of_bias = parts_of(others)
        for block in between.cut(q, k, after):
            n, heads, rows, keys = block
            products = memory.product(q[n, heads, rows], k[n, heads, keys], between.factor)
            made = chain.forward(
                products, between, block, before, after, of_bias, found=found, is_first=True
            )
            served = block.served(maps_of(after))
            output[n, served, rows] = made.applied @ v[n, served, keys]
        ctx.between = between
        ctx.save_for_backward(found, q, k, v, *others)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Block by block, unless the gradients are to have gradients, or are several."""
        found, *tensors = ctx.saved_tensors
        with (
            torch.autocast(grad.device.type, enabled=False),
            torch._C.DisableTorchFunction(),  # recorders have seen the call that this belongs to
        ):
            if torch.is_grad_enabled() or is_batched(grad):
                return None, *differentiable_gradients(ctx.between, tensors, grad)
            return None, *_gradients(ctx.between, tensors, grad, ctx.needs_input_grad[4:], found)


def _gradients(
    between: Between,
    tensors: list[Tensor],
    grad: Tensor,
    are_wanted: tuple[bool, ...],
    found: Tensor | None,
) -> tuple[Tensor | None, ...]:
    """Those of all tensors, block by block."""
    q, k, v, *others = tensors
    N, H, L, D = q.shape
    grad_q = q.new_empty(N, L, H, D).transpose(1, 2)
    # Of keys and values transposed: so the products need not turn the weights.
    grad_k, grad_v = (x.new_zeros(N, x.shape[1], x.shape[3], x.shape[2]) for x in (k, v))
    totals = [torch.zeros_like(x) if w else None for x, w in zip(others, are_wanted, strict=True)]
    of_scores, of_weights = Memory(q), Memory(q)
    slope = between.factor * between.rise
    before, after, of_bias = parts_of(others)
    for block in between.cut(q, k, after):
        n, heads, rows, keys = block
        served = block.served(maps_of(after))
        q_part, k_part, v_part = q[n, heads, rows], k[n, heads, keys], v[n, served, keys]
        grad_part = grad[n, served, rows]
        products = of_scores.product(q_part, k_part, between.factor)
        made = chain.forward(
            products, between, block, before, after, of_bias, found=found, is_first=False
        )
        add_product(grad_v[n, served, :, keys], grad_part, made.applied)
        grad_weights = of_weights.product(grad_part, v_part)
        of_block = chain.backward(made, grad_weights, between, block, before, after, totals[2:])
        add_product(grad_k[n, heads, :, keys], q_part, of_block.products, slope)
        grad_q[n, heads, rows] = scaled_product(of_block.products, k_part.transpose(-1, -2), slope)
        for total, more in zip(totals[:2], (of_block.before, of_block.after), strict=True):
            if total is not None and more is not None:
                total += more
    # Given back before more is taken: so the peak is that of the blocks.
    del of_scores, of_weights, products, made, grad_weights, of_block
    grad_k = turned(grad_k)
    grad_v = turned(grad_v)
    return grad_q, grad_k, grad_v, *totals


def differentiable_gradients(
    between: Between, tensors: list[Tensor | None], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients, of operations that have a gradient themselves, all at once."""
    is_twice = torch.is_grad_enabled()
    # Views, since what they come from may be the same, and is not to be gone back to.
    with torch.enable_grad():
        q, k, v, *others = (None if x is None else x.view_as(x) for x in tensors)
        assert q is not None
        assert k is not None
        assert v is not None
        everything = Block(*(slice(0, size) for size in (*q.shape[:3], k.shape[2])))
        before, after, of_bias = parts_of(others)
        products = scaled_product(q, k, between.factor)
        output = weights_of(products, between, everything, before, after, *of_bias) @ v
        inputs = [q, k, v, *others]
        wanted = [x for x in inputs if x is not None and x.requires_grad]
        found = torch.autograd.grad(output, wanted, grad, create_graph=is_twice)
    grads = iter(found)
    return tuple(next(grads) if x is not None and x.requires_grad else None for x in inputs)


def parts_of(others: Sequence[Tensor | None]) -> tuple[Tensor | None, Tensor | None, list[Tensor]]:
    """What mixes before and after, and what a bias is made of."""
    before, after, *of_bias = others
    return before, after, [x for x in of_bias if x is not None]
