"""Which tokens stand on the axes of which map.

A module says it with a method ``attention_tokens(batch)``, or the callback is given a function of
the batch, or a tokenizer. What they return is one of

- one list of tokens a sample, for all maps: an axis that they do not fit gets no labels;
- a mapping from globs of module paths to such lists, or to pairs (query tokens, key tokens),
  where None stands for no labels.

Padding is best left out at the end, or named "": it then counts in no score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.maps.image import ImageTokens
from mha_lab.recording.globs import matches
from mha_lab.recording.token_lists import Tokens, is_batch_of_tokenizer, rows_of

AxisTokens = tuple[Tokens | None, Tokens | None]
TokenSource = Tokens | Sequence[str] | Mapping[str, Tokens | AxisTokens]


def label_maps(maps: Sequence[AttentionMap], tokens: TokenSource) -> list[AttentionMap]:
    """Put tokens on the axes of the maps.

    Args:
        maps: Maps of one batch.
        tokens: One list of tokens a sample of the batch, the list of a single sample, what a fast
            tokenizer of transformers returned, or such tokens by glob of module path. A glob
            matches a whole path, or what follows any of its dots; whole paths come first.

    Returns:
        The maps, those for which there are tokens with their tokens.

    Raises:
        ValueError: If tokens are too many for an axis, are of too few samples, or are no lists;
            if those for all maps fit on none, or no glob matches a map.
    """
    if isinstance(tokens, Mapping) and not is_batch_of_tokenizer(tokens):
        _refuse_unmatched(maps, tokens)
        return [label(one, _choose(one.name.partition("#")[0], tokens)) for one in maps]
    rows = rows_of(tokens, _samples(maps))
    return on_some([label(one, axes) for one, axes in _fitting_all(maps, rows)], rows)


def label(one: AttentionMap, tokens: AxisTokens) -> AttentionMap:
    """Label the map's own samples."""

    def own(axis: Any) -> list[Sequence[str]] | None:
        if axis is None:
            return None
        rows = rows_of(axis, 1 if one.samples == (0,) else None, one.samples)
        if max(one.samples, default=-1) >= len(rows):
            raise ValueError(
                f"{one.name!r} needs tokens of sample {max(one.samples)}; "
                f"tokens were given of {len(rows)} {'sample' if len(rows) == 1 else 'samples'}"
            )
        return [rows[i] for i in one.samples]

    query, key = tokens
    return one.with_tokens(own(query), own(key))


def on_some(labelled: list[AttentionMap], tokens: Tokens) -> list[AttentionMap]:
    """Refuse tokens that are on none of the maps."""
    if not labelled or any((one.query_tokens, one.key_tokens) != (None, None) for one in labelled):
        return labelled
    longest = max(map(len, tokens), default=0)
    lengths = sorted({size for one in labelled for size in one.size})
    sentence = (
        f"tokens of length {longest} fit on no axis; the maps' axes have the lengths "
        f"{', '.join(map(str, lengths))}"
    )
    image = next((row for row in tokens if isinstance(row, ImageTokens)), None)
    if image is not None:
        patches = longest - image.first
        sentence += (
            f". An image has first + rows * columns tokens, here {image.first} + {patches}: "
            "first counts the class token and registers"
        )
    raise ValueError(sentence)


def _refuse_unmatched(maps: Sequence[AttentionMap], tokens: Mapping[str, Any]) -> None:
    """Refuse globs of which none matches a map; some may be of modules that were not chosen."""
    names = list(dict.fromkeys(one.name.partition("#")[0] for one in maps))
    if maps and not any(matches(name, str(glob)) for name in names for glob in tokens):
        raise ValueError(
            f"tokens are given for {', '.join(map(repr, tokens)) or 'nothing'}, which matches no "
            f"map; there are {', '.join(names)}"
        )


def _choose(name: str, tokens: Mapping[str, Tokens | AxisTokens]) -> AxisTokens:
    """The tokens of the first glob that matches, whole paths first."""
    whole = [found for glob, found in tokens.items() if matches(name, glob, anywhere=False)]
    partly = [found for glob, found in tokens.items() if matches(name, glob)]
    for found in [*whole, *partly]:
        pair = found if isinstance(found, tuple) else (found, found)
        if len(pair) != 2:
            raise ValueError(
                f"tokens of {name!r} are a tuple of {len(pair)}; "
                "a pair is (query tokens, key tokens)"
            )
        return pair
    return (None, None)


def fitting(one: AttentionMap, tokens: Tokens | None, *, exact: bool = False) -> AxisTokens:
    """The same tokens on each axis that is long enough; in cross-attention exactly as long."""
    if tokens is None:
        return (None, None)
    longest = max(map(len, tokens), default=0)
    exact = exact or one.kind == "cross" or any(isinstance(row, ImageTokens) for row in tokens)
    query, key = (
        tokens if longest == size or (longest < size and not exact) else None for size in one.size
    )
    return query, key


def _fitting_all(
    maps: Sequence[AttentionMap], tokens: Tokens
) -> Iterator[tuple[AttentionMap, AxisTokens]]:
    """Each map with the tokens of its axes.

    Beside cross-attention there are two sequences, so what is as long as one is not the other's.
    """
    longest = max(map(len, tokens), default=0)
    are_two = any(one.kind == "cross" for one in maps)
    exact = are_two and any(longest in one.size for one in maps)
    for one in maps:
        yield one, fitting(one, tokens, exact=exact)


def _samples(maps: Sequence[AttentionMap]) -> int | None:
    """How many samples all maps have, from the first; None where they differ."""
    found = {one.samples for one in maps}
    samples = found.pop() if len(found) == 1 else ()
    return len(samples) if samples == tuple(range(len(samples))) else None
