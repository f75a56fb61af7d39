"""Which tokens stand on the axes of which map.

A module says it with a method ``attention_tokens(batch)``, or the callback is given a function of
the batch, or a tokenizer. What they return is one of

- one list of tokens a sample, for all maps: an axis that they do not fit gets no labels;
- a mapping from globs of module paths to such lists, or to pairs (query tokens, key tokens),
  where None stands for no labels.

Padding is best left out at the end, or named "": it then counts in no score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.recording.globs import matches

Tokens = Sequence[Sequence[str]]
AxisTokens = tuple[Tokens | None, Tokens | None]
TokenSource = Tokens | Sequence[str] | Mapping[str, Tokens | AxisTokens]

_START = "<start>"
_IGNORED_LABEL = -100


def label_maps(maps: Sequence[AttentionMap], tokens: TokenSource) -> list[AttentionMap]:
    """Put tokens on the axes of the maps.

    Args:
        maps: Maps of one batch.
        tokens: One list of tokens a sample of the batch, the list of a single sample, or such lists
            by glob of module path. A glob matches a whole path, or what follows any of its dots;
            whole paths come first.

    Returns:
        The maps, those for which there are tokens with their tokens.

    Raises:
        ValueError: If tokens are too many for an axis, are of too few samples, or are no lists;
            if those for all maps fit on none.
    """
    if isinstance(tokens, Mapping):
        return [_label(one, _choose(one.name.partition("#")[0], tokens)) for one in maps]
    rows = _of_one_sample(tokens, maps) or tokens
    _check(rows)
    return _on_some([_label(one, _fitting(one, rows)) for one in maps], rows)


def is_tokenizer(tokens: Any) -> bool:
    """Whether this is a tokenizer rather than a function of the batch."""
    return hasattr(tokens, "convert_ids_to_tokens")


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
        return _on_some([_label(one, _fitting(one, source)) for one in maps], source or ())
    labelled = []
    for one in maps:
        if one.kind == "cross":
            labelled.append(_label(one, (target, source)))
        else:
            in_decoder = "decoder" in one.name
            labelled.append(_label(one, _fitting(one, target if in_decoder else source)))
    return labelled


def _label(one: AttentionMap, tokens: AxisTokens) -> AttentionMap:
    """Label the map's own samples."""

    def own(axis: Tokens | None) -> list[Sequence[str]] | None:
        if axis is None:
            return None
        _check(axis)
        if max(one.samples) >= len(axis):
            raise ValueError(
                f"{one.name!r} needs tokens of sample {max(one.samples)}; "
                f"tokens were given of {len(axis)} samples"
            )
        return [axis[i] for i in one.samples]

    query, key = tokens
    return one.with_tokens(own(query), own(key))


def _of_one_sample(tokens: Any, maps: Sequence[AttentionMap]) -> list[Sequence[str]] | None:
    """The tokens of a batch of one, given without the list around them; None if they are not."""
    is_flat = _is_list(tokens) and len(tokens) > 0 and isinstance(tokens[0], str)
    return [tokens] if is_flat and all(one.samples == (0,) for one in maps) else None


def _check(tokens: Any) -> None:
    """Refuse what is not one list a sample."""
    if not _is_list(tokens):
        what = "a Tensor" if isinstance(tokens, Tensor) else repr(tokens)
        raise ValueError(f"tokens are {what}; give one list of str a sample")
    if len(tokens) > 0 and not _is_list(tokens[0]):
        raise ValueError(f"tokens hold {tokens[0]!r} where a list of one sample's tokens belongs")


def _is_list(value: Any) -> bool:
    has_places = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    return has_places and not isinstance(value, str | bytes | Mapping | Tensor)


def _on_some(labelled: list[AttentionMap], tokens: Tokens) -> list[AttentionMap]:
    """Refuse tokens that are on none of the maps."""
    if labelled and all(one.query_tokens is None and one.key_tokens is None for one in labelled):
        lengths = sorted({size for one in labelled for size in one.size})
        raise ValueError(
            f"tokens of length {max(map(len, tokens), default=0)} fit on no axis; "
            f"the maps' axes have the lengths {', '.join(map(str, lengths))}"
        )
    return labelled


def _choose(name: str, tokens: Mapping[str, Tokens | AxisTokens]) -> AxisTokens:
    """The tokens of the first glob that matches, whole paths first."""
    whole = [found for glob, found in tokens.items() if matches(name, glob, anywhere=False)]
    partly = [found for glob, found in tokens.items() if matches(name, glob)]
    for found in [*whole, *partly]:
        return found if isinstance(found, tuple) else (found, found)
    return (None, None)


def _fitting(one: AttentionMap, tokens: Tokens | None) -> AxisTokens:
    """The same tokens on each axis that is long enough; in cross-attention exactly as long."""
    if tokens is None:
        return (None, None)
    longest = max(map(len, tokens), default=0)
    exact = one.kind == "cross"
    query, key = (
        tokens if longest == size or (longest < size and not exact) else None for size in one.size
    )
    return query, key


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
