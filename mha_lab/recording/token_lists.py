"""What people give as tokens, as one list of tokens a sample; and what is none, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from mha_lab.maps.image import ImageTokens

Tokens = Sequence[Sequence[str]]

_OF_IDS = "give their tokens: [tokenizer.convert_ids_to_tokens(row) for row in ids]"


def rows_of(tokens: Any, samples: int | None = None, chosen: Sequence[int] | None = None) -> Tokens:
    """One list of tokens a sample.

    Args:
        tokens: Such lists; the list of the only sample; or what a fast tokenizer of transformers
            returned, whose padding gets empty labels.
        samples: How many the batch has, as far as it is known.
        chosen: The samples whose lists will be read. Others are not looked at, since lists may be
            made when they are asked for, and a batch has many; None means all.

    Raises:
        ValueError: If it is something else.
    """
    if is_batch_of_tokenizer(tokens):
        return _rows_of_batch(tokens)
    if is_tokenizer(tokens):
        raise ValueError(
            f"tokens are a {type(tokens).__name__}, which does not know the batch; give what it "
            "returned for it: tokens=tokenizer(texts)"
        )
    if isinstance(tokens, Tensor):
        raise ValueError(f"tokens are a Tensor; {_OF_IDS}")
    if not is_list(tokens):
        raise ValueError(f"tokens are {_told(tokens)}; give one list of str a sample")
    if isinstance(tokens, ImageTokens) or (len(tokens) > 0 and isinstance(tokens[0], str)):
        if samples == 1:
            return [tokens]
        several = "" if samples is None else f", of which there are {samples}"
        raise ValueError(
            f"tokens are one list that begins with {tokens[0]!r}; give one list of str a "
            f"sample{several}"
        )
    for i in range(len(tokens)) if chosen is None else chosen:
        if i < len(tokens):
            _check_row(tokens[i])
    rows: Tokens = tokens
    return rows


def is_tokenizer(tokens: Any) -> bool:
    """Whether this is a tokenizer rather than a function of the batch."""
    return hasattr(tokens, "convert_ids_to_tokens")


def is_batch_of_tokenizer(tokens: Any) -> bool:
    """Whether this is what a tokenizer returned, rather than tokens by glob."""
    return isinstance(tokens, Mapping) and "input_ids" in tokens


def is_list(value: Any) -> bool:
    """Whether this is a list or acts as one."""
    has_places = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    return has_places and not isinstance(value, str | bytes | Mapping | Tensor)


def _rows_of_batch(batch: Any) -> Tokens:
    encodings = getattr(batch, "encodings", None)
    if not encodings:
        raise ValueError(f"tokens are a {type(batch).__name__} that holds ids alone; {_OF_IDS}")
    return [
        [token if is_read else "" for token, is_read in zip(one.tokens, mask, strict=True)]
        for one, mask in ((one, one.attention_mask) for one in encodings)
    ]


def _check_row(row: Any) -> None:
    """Refuse what is not the list of one sample's tokens."""
    if not is_list(row):
        raise ValueError(f"tokens hold {_told(row)} where a list of one sample's tokens belongs")
    for token in row:
        if token is None or is_list(token):
            raise ValueError(
                f"tokens hold {_told(token)} where one token belongs; a pair (query tokens, key "
                "tokens) stands behind a glob: {'decoder.*.cross_attn': (queries, keys)}"
            )


def _told(value: Any) -> str:
    """The value as it is written, where that is short; else its type."""
    written = repr(value)
    return written if len(written) <= 40 else f"a {type(value).__name__}"
