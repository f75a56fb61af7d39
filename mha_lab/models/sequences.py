"""What the models share about token sequences: masks, shifting, greedy decoding."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from mha_lab.tasks.vocabulary import Vocabulary


def padding_mask(ids: Int[Tensor, "N L"]) -> Bool[Tensor, "N L"]:
    """True where a token is padding, except at the first position.

    The first token is padding only in a row that holds nothing at all. Such a row must see
    something: a softmax over no keys is NaN in ``nn.MultiheadAttention``, and NaN spreads.
    """
    mask = ids == Vocabulary.PAD
    mask[:, :1] = False
    return mask


def causal_mask(length: int, device: torch.device) -> Bool[Tensor, "L L"]:
    """The mask under which no position sees a later one: True above the diagonal (blocked)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)


def causal_masks(length: int, start: int, device: torch.device) -> dict[str, Any]:
    """Masks of causal self-attention whose queries begin at ``start``.

    Where that is not the first position there is one query, and no key after it to be hidden.
    """
    if start:
        return {}
    return {"attn_mask": causal_mask(length, device), "is_causal": True}


def shift_right(target: Int[Tensor, "N T"]) -> Int[Tensor, "N T"]:
    """The decoder's input: ``<bos>``, then all of the target but its last column."""
    bos = target.new_full((target.size(0), 1), Vocabulary.BOS)
    return torch.cat([bos, target[:, :-1]], dim=1)


FREE = -1
"""Stands, in what decoding is given, where a token is to be chosen."""


@torch.no_grad()
def decode_greedily(
    model: nn.Module,
    next_logits: Callable[[Int[Tensor, "N t"]], Float[Tensor, "N V"]],
    *,
    rows: int,
    max_length: int,
    device: torch.device,
    blanks: Bool[Tensor, "N B"] | None = None,
) -> Int[Tensor, "N T"]:
    """Choose the most likely token again and again, until every row has its ``<eos>``.

    Args:
        model: what ``next_logits`` computes with; in evaluation mode meanwhile.
        next_logits: from the outputs so far to the logits of the next token.
        rows: how many sequences.
        max_length: the most tokens to produce, ``<eos>`` counted.
        device: where.
        blanks: True where ``<pad>`` is put in place of a token, and the row goes on.

    Returns:
        Each row up to its ``<eos>``, then ``<pad>``.

    Raises:
        ValueError: ``max_length`` below 1.
    """
    given = to_fill(rows, max_length, device, blanks)
    return fill(model, next_logits, given, start=0)


def to_fill(
    rows: int, max_length: int, device: torch.device, blanks: Bool[Tensor, "N B"] | None
) -> Int[Tensor, "N T"]:
    """An output of which nothing is known but its blanks; arguments as ``decode_greedily``."""
    if max_length < 1:
        raise ValueError(f"max_length must be at least 1, got {max_length}")
    given = torch.full((rows, max_length), FREE, device=device)
    if blanks is not None:
        width = min(max_length, blanks.shape[1])
        given[:, :width].masked_fill_(blanks[:, :width], Vocabulary.PAD)
    return given


@torch.no_grad()
def fill(
    model: nn.Module,
    next_logits: Callable[[Int[Tensor, "N t"]], Float[Tensor, "N V"]],
    given: Int[Tensor, "N T"],
    *,
    start: int,
) -> Int[Tensor, "N T"]:
    """Go along the columns, and choose the most likely token wherever none is given.

    Args:
        model: what ``next_logits`` computes with; in evaluation mode meanwhile.
        next_logits: from the columns so far to the logits of the next one.
        given: token ids, or ``FREE``.
        start: how many columns there are to begin with, in which nothing is free.

    Returns:
        The columns up to that in which the last row came to its ``<eos>``; what a row has behind
        its own is ``<pad>``.
    """
    was_training = model.training
    model.eval()
    output = given[:, :start]
    is_finished = torch.zeros(len(given), dtype=torch.bool, device=given.device)
    try:
        while output.size(1) < given.size(1) and not is_finished.all():
            known = given[:, output.size(1)]
            chosen = next_logits(output).argmax(-1)
            token = torch.where(known == FREE, chosen, known)
            token = token.masked_fill(is_finished, Vocabulary.PAD)
            output = torch.cat([output, token[:, None]], dim=1)
            is_finished |= (token == Vocabulary.EOS) & (known == FREE)
    finally:
        model.train(was_training)
    return output
