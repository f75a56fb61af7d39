"""From the scores of one block to its weights and back, by hand: in place, and without autograd.

What ``between.weights_of`` does, step by step. A softcap is 2·cap·σ(x) - cap of x = 2·scores / cap,
which takes a fifth of the time of a tanh on a CPU; the 2 / cap is in the factor of the products.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mha_lab.attention.blockwise.between import Between
from mha_lab.attention.blockwise.block import Block
from mha_lab.attention.blockwise.mixed import mix, mix_back
from mha_lab.attention.parts import ask


class Chain(NamedTuple):
    """What the steps of a block have left for the way back, each (n, h, rows, keys).

    Attributes:
        products: What the steps began with, if heads exchange them.
        squashed: σ of what the softcap was given, if there is one.
        kept: What the bias has kept for the way back.
        scores: What the weighting was given.
        found: What the weighting has found for each row (n, h, rows, 1), if it finds something.
        weights: What the weighting made of them, with a graph where it has no gradient by hand.
        unmixed: What heads or maps were mixed of after it.
        applied: What is applied to the values.
    """

    products: Tensor
    squashed: Tensor | None
    kept: Any
    scores: Tensor
    found: tuple[Tensor, ...]
    weights: Tensor
    unmixed: Tensor
    applied: Tensor


class Gradients(NamedTuple):
    """Of what went into the weights of a block.

    Attributes:
        products: Those of the products, divided by ``between.rise``.
        before: Of the matrix between heads, if there is one.
        after: Of the other.
    """

    products: Tensor
    before: Tensor | None
    after: Tensor | None


def scores_of(
    products: Tensor,
    between: Between,
    block: Block,
    before: Tensor | None,
    of_bias: Sequence[Tensor],
) -> tuple[Tensor, Tensor | None, Any]:
    """The scores that the weighting is given, squashed ones if there is a cap, what a bias keeps.

    Args:
        products: Of queries and keys, times the factor; overwritten, unless heads exchange them.
        between: What lies between.
        block: Which they are.
        before: Between heads.
        of_bias: What the bias is made of.
    """
    kept = None
    scores, squashed = mix(before, products), None
    if between.softcap is not None:
        squashed = scores.sigmoid_()
        lowest = squashed.new_tensor(-between.softcap)
        scores = torch.add(lowest, squashed, alpha=2 * between.softcap)
    if between.bias is not None:
        kept = between.bias.add(scores, block, *of_bias)
    added = block.of(between.added)
    return scores if added is None else scores.add_(added), squashed, kept


def forward(
    products: Tensor,
    between: Between,
    block: Block,
    before: Tensor | None,
    after: Tensor | None,
    of_bias: Sequence[Tensor],
    *,
    found: Tensor | None,
    is_first: bool,
) -> Chain:
    """The weights of a block.

    Args:
        products: Of queries and keys, times the factor; overwritten, unless heads exchange them.
        between: What lies between.
        block: Which they are.
        before: Between heads.
        after: Between heads, or maps.
        of_bias: What the bias is made of.
        found: What the weighting finds for each row (N, H, L, 1), to be found once for both passes.
        is_first: Whether it is to be found now; then there is no way back.
    """
    scores, squashed, kept = scores_of(products, between, block, before, of_bias)
    of_rows = () if found is None else (found[block.n, block.heads, block.rows],)
    is_by_hand = is_first or ask(between.weighting, "gradient", None) is not None
    with torch.set_grad_enabled(not is_by_hand):
        scores = scores if is_by_hand else scores.detach().requires_grad_()
        if is_first and of_rows:
            weights = _first(between.weighting, scores, block.of(between.opened), *of_rows)
        else:
            weights = between.weighting(scores, block.of(between.opened), *of_rows)
    unmixed = _without(block.of(between.blocked), weights.detach())
    applied = _without(block.of(between.closed), mix(after, unmixed))
    return Chain(products, squashed, kept, scores, of_rows, weights, unmixed, applied)


def backward(
    chain: Chain,
    grad: Tensor,
    between: Between,
    block: Block,
    before: Tensor | None,
    after: Tensor | None,
    totals: Sequence[Tensor | None],
) -> Gradients:
    """The gradients of a block.

    Args:
        chain: What ``forward`` has left.
        grad: Of the weights that are applied; overwritten.
        between: What lies between.
        block: Which they are.
        before: Between heads.
        after: Between heads, or maps.
        totals: To which the gradients of what the bias is made of are added.
    """
    grad, grad_after = mix_back(after, chain.unmixed, _without(block.of(between.closed), grad))
    grad = _without(block.of(between.blocked), grad)
    by_hand: Any = ask(between.weighting, "gradient", None)
    if by_hand is None:
        (grad,) = torch.autograd.grad(chain.weights, chain.scores, grad)
    else:
        grad = by_hand(chain.scores, chain.weights, grad, *chain.found)
    if between.bias is not None:
        between.bias.back(grad, chain.kept, block, *totals)
    if between.softcap is not None:
        assert chain.squashed is not None
        grad = torch.ops.aten.sigmoid_backward.grad_input(grad, chain.squashed, grad_input=grad)
    grad, grad_before = mix_back(before, chain.products, grad)
    grad_before = None if grad_before is None else grad_before * between.rise
    return Gradients(grad, grad_before, grad_after)


def _first(weighting: Any, scores: Tensor, opened: Tensor | None, found: Tensor) -> Tensor:
    """The weights, and what is found for each row on the way, which is written to ``found``."""
    together = ask(weighting, "find_and_weigh", None)
    if together is None:
        found.copy_(weighting.find(scores))
        weights: Tensor = weighting(scores, opened, found)
    else:
        of_rows, weights = together(scores)
        found.copy_(of_rows)
    return weights


def _without(blocked: Tensor | None, weights: Tensor) -> Tensor:
    return weights if blocked is None else weights.masked_fill(blocked, 0.0)
