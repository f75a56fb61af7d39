"""Which tokens stand on the axes of which map.

A module says it with a method ``attention_tokens(batch)``, or the callback is given a function of
the batch. Either returns one list of tokens a sample, for all maps, or a mapping from globs of
module paths to such lists, or to pairs (query tokens, key tokens).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from mha_lab.recording.attention_map import AttentionMap

Tokens = Sequence[Sequence[str]]
TokenSource = Tokens | Mapping[str, Tokens | tuple[Tokens, Tokens]]


def label_maps(maps: Sequence[AttentionMap], tokens: TokenSource) -> list[AttentionMap]:
    """Put tokens on the axes of the maps.

    Args:
        maps: Maps of one batch.
        tokens: One list of tokens a sample of the batch, or such lists by glob of module path. A
            glob matches a whole path, or what follows any of its dots; whole paths come first.

    Returns:
        The maps, those for which there are tokens with their tokens.
    """
    return [_label(one, tokens) for one in maps]


def _label(one: AttentionMap, tokens: TokenSource) -> AttentionMap:
    chosen = _choose(one.name.partition("#")[0], tokens)
    if chosen is None:
        return one
    query, key = chosen if isinstance(chosen, tuple) else (chosen, chosen)
    return one.with_tokens([query[i] for i in one.samples], [key[i] for i in one.samples])


def _choose(name: str, tokens: TokenSource) -> Tokens | tuple[Tokens, Tokens] | None:
    if not isinstance(tokens, Mapping):
        return tokens
    for prefix in ("", "*."):
        for glob, found in tokens.items():
            if fnmatchcase(name, prefix + glob):
                return found
    return None
