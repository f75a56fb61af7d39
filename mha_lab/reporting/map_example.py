"""The example that maps show, in words: what a model read, and what it was to write."""

from collections.abc import Mapping

from mha_lab.maps.printable import WRITES
from mha_lab.reporting.best_maps import BestMap
from mha_lab.tasks.vocabulary import Vocabulary

_BOS, _EOS = Vocabulary.SPECIAL[Vocabulary.BOS], Vocabulary.SPECIAL[Vocabulary.EOS]


def in_and_out(maps: Mapping[str, BestMap]) -> str:
    """``7 3 9 → 3 7 9``; only what was read where the maps do not say what was to be written.

    Args:
        maps: by kind of attention, of one example.
    """
    shown = maps.get("cross") or maps.get("masked") or maps.get("self")
    tokens = shown.query if shown and shown.query else []
    begin = Vocabulary.output_start(tokens)
    if begin is None:
        read, written = tokens, []
    elif tokens[begin] == _BOS:
        read, written = (shown.key or [] if shown and "cross" in maps else []), tokens[begin + 1 :]
    else:
        read, written = tokens[:begin], tokens[begin + 1 :]
    words = [" ".join(token for token in side if token != _EOS) for side in (read, written)]
    return WRITES.join(filter(None, words))


def rows(tokens: list[str]) -> list[str]:
    """Labels of rows: from where the output begins, with the token that each is to write.

    While a model is trained, a row reads the token that the row before was to write.
    """
    begin = Vocabulary.output_start(tokens)
    if begin is None or any(WRITES in token for token in tokens):
        return tokens
    following = [*tokens[begin + 1 :], _EOS]
    both = zip(tokens[begin:], following, strict=True)
    return [*tokens[:begin], *(f"{one}{WRITES}{other}" for one, other in both)]
