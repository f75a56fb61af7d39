"""Tokens of a Hugging Face batch on the axes of its maps: a tokenizer tells what the ids are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.recording.labels import fitting, label, on_some

_START = "<start>"
_IGNORED_LABEL = -100


def tokenize_maps(maps: Sequence[AttentionMap], tokenizer: Any, batch: Any) -> list[AttentionMap]:
    """Put the tokens of a Hugging Face batch on the axes of the maps.

    Args:
        maps: Maps of the batch.
        tokenizer: Has ``convert_ids_to_tokens`` and, perhaps, ``pad_token_id``.
        batch: A mapping with ``input_ids`` (N, L); with cross-attention also
            ``decoder_input_ids``, or ``labels``, which are shifted to the right. Or the ids
            themselves, alone or first in a tuple.

    Returns:
        The maps with their tokens.

    Raises:
        ValueError: If the batch has no ids, or ids that fit on no map.
    """
    fields = _fields(batch)
    source = _decode(tokenizer, fields.get("input_ids"))
    target = _decode(tokenizer, fields.get("decoder_input_ids"))
    if target is None and (labels := _decode(tokenizer, fields.get("labels"))) is not None:
        target = [[_START, *row[:-1]] for row in labels]
    if source is None and target is None:
        raise ValueError(
            "the batch holds no ids for the tokenizer: no 'input_ids' (N, L) of whole numbers"
        )
    if not any(one.kind == "cross" for one in maps):
        return on_some([label(one, fitting(one, source)) for one in maps], source or ())
    labelled = []
    for one in maps:
        if one.kind == "cross":
            labelled.append(label(one, (target, source)))
        else:
            in_decoder = "decoder" in one.name
            labelled.append(label(one, fitting(one, target if in_decoder else source)))
    return labelled


def _fields(batch: Any) -> Mapping[str, Any]:
    """A batch as a mapping with ``input_ids``."""
    if isinstance(batch, Mapping):
        return batch
    if isinstance(batch, Sequence) and batch:
        return _fields(batch[0])
    return {"input_ids": batch} if isinstance(batch, Tensor) else {}


def _decode(tokenizer: Any, ids: Any) -> list[list[str]] | None:
    """Tokens of ids (N, L); padding is ""."""
    if not isinstance(ids, Tensor) or ids.ndim != 2 or ids.is_floating_point():
        return None
    nothing = {getattr(tokenizer, "pad_token_id", None), _IGNORED_LABEL}
    return [
        ["" if i in nothing else str(tokenizer.convert_ids_to_tokens(i)) for i in row]
        for row in ids.tolist()
    ]
