"""Attention with any weighting of rows, in blocks that stay in the cache.

A row of weights follows from its row of scores, so heads and rows may be computed some at a time,
each block where the last one lay: on a CPU, fresh memory for all scores takes longer than what is
done with them. Nothing of (N, H, L, S) numbers is kept. The backward pass makes each block again;
what lies between the two products is differentiated by autograd, so a weighting has to give nothing
but its weights. Keys that no row of a block may see are left out.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from mha_lab.attention.allowed import per_map, take_apart
from mha_lab.attention.functional import Mask, exchange
from mha_lab.attention.grouped import serve_groups
from mha_lab.attention.multihead.blocks import BLOCK_ELEMENTS, is_batched, is_plain
from mha_lab.attention.normalise import capped
from mha_lab.attention.parts import RowsOver, ask
from mha_lab.attention.states.precision import exactly

_WORTH = 2**16
"""Samples of fewer weights are best computed all at once."""

_FEWEST_ROWS = 32
"""Below that, adding up the gradients of keys and values takes longer than making them."""


class Between(NamedTuple):
    """What lies between scores and the weights that are applied, apart from what has a gradient.

    Attributes:
        weighting: From scores (n, h, rows, keys) and opened to weights, by rows.
        scale: Factor of q·k.
        softcap: Bound of the scores, or None.
        opened: True where a query may attend, with rows that see no key open to all, (1 or N, 1 or
            H, L, S).
        added: Added to the scores, -inf where not opened, of such a shape; None if there is
            nothing to add.
        blocked: What must be 0 after the weighting, which gives 0 where scores are -inf: rows that
            see no key, (1 or N, 1 or H, L, 1); None if there are none.
        closed: What must be 0 after heads were mixed, (1 or N, H, L, S); None if heads see alike.
    """

    weighting: Any
    scale: float
    softcap: float | None
    opened: Tensor
    added: Tensor | None
    blocked: Tensor | None
    closed: Tensor | None


class Block(NamedTuple):
    """One sample, some heads, some rows, and the keys that any of these may see."""

    n: slice
    heads: slice
    rows: slice
    keys: slice

    def of(self, mask: Tensor | None) -> Tensor | None:
        """What a tensor (1 or N, 1 or H, L, 1 or S) says of it, (1, 1 or h, rows, 1 or keys)."""
        if mask is None:
            return None
        mask = mask if mask.shape[0] == 1 else mask[self.n]
        mask = mask if mask.shape[1] == 1 else mask[:, self.heads]
        mask = mask if mask.shape[2] == 1 else mask[:, :, self.rows]
        return mask if mask.shape[3] == 1 else mask[..., self.keys]


def attend_in_blocks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Mask | None,
    is_causal: bool,
    steps: Any,
    dropout_p: float,
) -> Tensor | None:
    """The heads' outputs (N, H, L, D), or None where the parts or the call are not of that kind.

    Args:
        q: (N, M·H, L, D/M).
        k: (N, M·kv_heads, S, D/M).
        v: (N, kv_heads, S, D).
        bias: Added to the scores, or None.
        mask: Inside mask, or None.
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
        steps: See :class:`mha_lab.attention.pipeline.Steps`.
        dropout_p: Probability of dropping a weight.
    """
    L, S = q.shape[2], k.shape[2]
    H, M = steps.num_heads, q.shape[1] // steps.num_heads
    if not (q.is_cpu and dropout_p == 0 and H * L * S >= _WORTH and q.shape[0] > 0):
        return None
    if not (is_plain(q, k, mask) and is_plain(v, v, None)):
        return None
    matrices = ask(steps.mixing, "matrices", None)
    if matrices is None and not ask(steps.mixing, "is_within_heads", False):
        return None
    allowed, opened, added = (
        None if x is None else x[(None,) * (4 - x.ndim)]
        for x in take_apart(mask, is_causal, L, S, q.device)
    )
    assert allowed is not None
    assert opened is not None
    over = _rows_over(steps.weighting, opened)
    if over is None:
        return None
    before, after = (None, None) if matrices is None else matrices()
    if bias is not None:
        bias = bias[(None,) * (4 - bias.ndim)]
    if over.scale is not None:
        if before is not None or steps.softcap is not None:
            return None  # what would have to be scaled comes later
        scale = over.scale
        q = q * per_map(scale, H, M)
        bias = added if bias is None else bias if added is None else bias + added
        bias, added = None if bias is None else bias * scale, None
    is_free = mask is None and not is_causal
    if not is_free:
        zero = q.new_zeros(()) if added is None else added
        added = torch.where(opened, zero, -torch.inf)
    blocked = None if is_free else allowed.any(-1, keepdim=True).logical_not()
    between = Between(
        over.weighting,
        steps.scale,
        steps.softcap,
        per_map(opened, H, M),
        None if added is None else per_map(added, H, M),
        None if blocked is None or not blocked.any() else per_map(blocked, H, M),
        allowed.logical_not() if after is not None and allowed.shape[1] > 1 else None,
    )
    k, v = serve_groups(k, steps.kv_heads, H), serve_groups(v, steps.kv_heads, H)
    v = v.repeat_interleave(M, 1) if M > 1 else v
    bias = None if bias is None else per_map(bias, H, M)
    heads = exactly(_apply, q, k, v, others=[bias, before, after], between=between)
    mixed: Tensor = heads if after is not None else steps.mixing(heads)
    return mixed.to(v.dtype)


def _rows_over(weighting: Any, opened: Tensor) -> RowsOver | None:
    """What a weighting does to each row alike, in every head, if it is of that kind."""
    as_rows = ask(weighting, "as_rows", None)
    if as_rows is not None:
        over: RowsOver = as_rows(opened)
        return over
    return RowsOver(weighting) if ask(weighting, "treats_rows_alike", False) else None


def _apply(
    q: Tensor, k: Tensor, v: Tensor, *, others: list[Tensor | None], between: Between
) -> Tensor:
    others = [None if x is None else x.to(q.dtype) for x in others]
    attended: Tensor = _InBlocks.apply(between, q, k, v, *others)  # type: ignore[no-untyped-call]
    return attended


class _InBlocks(Function):
    """The heads' outputs from queries, keys, values, a bias and the matrices between heads."""

    @staticmethod
    def forward(
        ctx: Any, between: Between, q: Tensor, k: Tensor, v: Tensor, *others: Tensor | None
    ) -> Tensor:
        N, H, L, _ = q.shape
        found = q.new_empty(N, H, L, 1) if ask(between.weighting, "find", None) else None
        output = v.new_empty(N, L, H, v.shape[-1]).transpose(1, 2)  # heads side by side
        memory = _Memory(q)
        for block in _blocks(q, k, between, is_mixed=others[-1] is not None):
            n, heads, rows, keys = block
            scores = memory.product(q[n, heads, rows], k[n, heads, keys], between.scale)
            parts = _parts(block, others)
            weights = _weights(scores, between, block, *parts, found=found, is_first=True)
            output[n, heads, rows] = weights @ v[n, heads, keys]
        ctx.between = between
        ctx.save_for_backward(found, q, k, v, *others)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        found, *tensors = ctx.saved_tensors
        with (
            torch.autocast(grad.device.type, enabled=False),
            torch._C.DisableTorchFunction(),  # recorders have seen the call that this belongs to
        ):
            if torch.is_grad_enabled() or is_batched(grad):
                return None, *_differentiable_gradients(ctx.between, tensors, grad)
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
    grad_k, grad_v = (x.new_zeros(N, H, x.shape[3], x.shape[2]) for x in (k, v))
    totals = [torch.zeros_like(x) for x, w in zip(others, are_wanted, strict=True) if w]
    of_scores, of_weights = _Memory(q), _Memory(q)
    for block in _blocks(q, k, between, is_mixed=others[-1] is not None):
        n, heads, rows, keys = block
        q_part, k_part, v_part = q[n, heads, rows], k[n, heads, keys], v[n, heads, keys]
        grad_part = grad[n, heads, rows]
        scores = of_scores.product(q_part, k_part, between.scale).detach().requires_grad_()
        parts = [
            None if x is None else x.detach().requires_grad_(w)
            for x, w in zip(_parts(block, others), are_wanted, strict=True)
        ]
        with torch.enable_grad():
            weights = _weights(scores, between, block, *parts, found=found)
        grad_scores, *of_parts = torch.autograd.grad(
            weights,
            [scores, *(x for x in parts if x is not None and x.requires_grad)],
            of_weights.product(grad_part, v_part),
        )
        _add_product(grad_v[n, heads, :, keys], grad_part, weights.detach())
        _add_product(grad_k[n, heads, :, keys], q_part, grad_scores, between.scale)
        grad_q[n, heads, rows] = _product(grad_scores, k_part.transpose(-1, -2), between.scale)
        for total, part in zip(_parts(block, totals), of_parts, strict=True):
            assert total is not None
            total += part
    of_others = iter(totals)
    return (
        grad_q,
        grad_k.transpose(2, 3),
        grad_v.transpose(2, 3),
        *(next(of_others) if w else None for w in are_wanted),
    )


def _differentiable_gradients(
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
        everything = Block(*(slice(None) for _ in range(4)))
        scores = _product(q, k, between.scale)
        output = _weights(scores, between, everything, *others) @ v
        inputs = [q, k, v, *others]
        wanted = [x for x in inputs if x is not None and x.requires_grad]
        found = torch.autograd.grad(output, wanted, grad, create_graph=is_twice)
    grads = iter(found)
    return tuple(next(grads) if x is not None and x.requires_grad else None for x in inputs)


def _weights(
    scores: Tensor,
    between: Between,
    block: Block,
    bias: Tensor | None,
    before: Tensor | None,
    after: Tensor | None,
    *,
    found: Tensor | None = None,
    is_first: bool = False,
) -> Tensor:
    """The weights that are applied to the values of a block.

    Args:
        scores: (n, h, rows, keys).
        between: What lies between.
        block: Which they are.
        bias: Of the block.
        before: Between heads.
        after: Between heads.
        found: What the weighting finds for each row (N, H, L, 1), to be found once for both passes.
        is_first: Whether it is to be found now.
    """
    if before is not None:
        scores = exchange(before, scores)
    if between.softcap is not None:
        scores = capped(scores, between.softcap)
    if bias is not None:
        scores = scores + bias
    added, opened = block.of(between.added), block.of(between.opened)
    if added is not None:
        scores = scores + added
    if found is None:
        weights: Tensor = between.weighting(scores, opened)
    else:
        of_rows = found[block.n, block.heads, block.rows]
        if is_first:
            of_rows.copy_(between.weighting.find(scores))
        weights = between.weighting(scores, opened, of_rows)
    blocked, closed = block.of(between.blocked), block.of(between.closed)
    if blocked is not None:
        weights = weights.masked_fill(blocked, 0.0)
    if after is not None:
        weights = exchange(after, weights)
    return weights if closed is None else weights.masked_fill(closed, 0.0)


def _blocks(q: Tensor, k: Tensor, between: Between, *, is_mixed: bool) -> Iterator[Block]:
    """Cut samples, heads (unless they are mixed) and rows."""
    N, H, L, _ = q.shape
    S = k.shape[2]
    heads = H if is_mixed else min(H, max(1, BLOCK_ELEMENTS // (L * S)))
    rows = min(L, max(_FEWEST_ROWS, BLOCK_ELEMENTS // (heads * S)))
    seen = between.opened.flatten(0, 1).any(0) if between.added is not None else None
    for r in range(0, L, rows):
        row = slice(r, r + rows)
        keys = slice(0, S)
        if seen is not None:
            found = seen[row].any(0).nonzero()
            keys = slice(int(found[0]), int(found[-1]) + 1)
        for n in range(N):
            for h in range(0, H, heads):
                yield Block(slice(n, n + 1), slice(h, h + heads), row, keys)


def _parts(block: Block, others: Any) -> list[Tensor | None]:
    """What belongs to a block of a bias; matrices between heads belong to each."""
    return [block.of(x) if x is not None and x.ndim == 4 else x for x in others]


class _Memory:
    """Where the scores of one block lie after those of another."""

    def __init__(self, like: Tensor) -> None:
        self.all = like.new_empty(0)

    def product(self, a: Tensor, b: Tensor, scale: float = 1.0) -> Tensor:
        """The scaled product (n, h, rows, keys) of rows and keys, until the next."""
        size = a.shape[:-1].numel() * b.shape[-2]
        if len(self.all) < size:
            self.all = self.all.new_empty(size)
        return _product(a, b, scale, self.all[:size])


def _product(a: Tensor, b: Tensor, scale: float, out: Tensor | None = None) -> Tensor:
    """The scaled product (n, h, rows, keys) of rows and keys."""
    a, b, shape = _matrices(a), _matrices(b), (*a.shape[:-1], b.shape[-2])
    out = None if out is None else out.view(len(a), *shape[-2:])
    nothing = a.new_zeros(1)  # what is multiplied by beta
    return torch.baddbmm(nothing, a, b.transpose(1, 2), beta=0, alpha=scale, out=out).view(shape)


def _add_product(total: Tensor, a: Tensor, b: Tensor, scale: float = 1.0) -> None:
    """Add the scaled product of a, turned, and b."""
    total[0].baddbmm_(_matrices(a).transpose(1, 2), _matrices(b), alpha=scale)


def _matrices(x: Tensor) -> Tensor:
    return x[0] if len(x) == 1 else x.flatten(0, 1)
