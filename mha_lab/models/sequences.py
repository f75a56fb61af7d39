"""What the models share about token sequences: masks, shifting, greedy decoding."""

from collections.abc import Callable

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


def shift_right(target: Int[Tensor, "N T"]) -> Int[Tensor, "N T"]:
    """The decoder's input: ``<bos>``, then all of the target but its last column."""
    bos = target.new_full((target.size(0), 1), Vocabulary.BOS)
    return torch.cat([bos, target[:, :-1]], dim=1)


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
    if max_length < 1:
        raise ValueError(f"max_length must be at least 1, got {max_length}")
    was_training = model.training
    model.eval()
    output = torch.empty(rows, 0, dtype=torch.long, device=device)
    is_finished = torch.zeros(rows, dtype=torch.bool, device=device)
    try:
        while output.size(1) < max_length and not is_finished.all():
            token = next_logits(output).argmax(-1).masked_fill(is_finished, Vocabulary.PAD)
            if blanks is not None and output.size(1) < blanks.size(1):
                token = token.masked_fill(blanks[:, output.size(1)], Vocabulary.PAD)
            output = torch.cat([output, token[:, None]], dim=1)
            is_finished |= token == Vocabulary.EOS
    finally:
        model.train(was_training)
    return output
