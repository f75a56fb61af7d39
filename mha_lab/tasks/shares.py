"""One file of pairs in several parts, so that no source is in two of them."""

import hashlib
from collections.abc import Mapping, Sequence

from mha_lab.tasks.splits import Split

Tokens = tuple[list[str], list[str]]
"""Of a source and of its target."""


def keep_apart(pairs: Sequence[Tokens], shares: Mapping[Split, float]) -> dict[Split, list[Tokens]]:
    """Divide pairs by their sources: all pairs of one source fall to one part.

    A hash of the source decides, so the parts follow from the file's content alone: not from the
    order of its lines, not from a seed.

    Args:
        pairs: to be divided.
        shares: of the sources that go to ``validation`` or ``test``, each above 0, together below
            1; training keeps the rest.

    Returns:
        The pairs of each part in their order, training's too.

    Raises:
        ValueError: a share is out of its range, or a part would hold nothing.
    """
    for split, share in shares.items():
        if not 0 < share < 1:
            raise ValueError(f"{split} must be a file, or a share between 0 and 1, got {share}")
    if sum(shares.values()) >= 1:
        said = " and ".join(f"{split}={share}" for split, share in shares.items())
        raise ValueError(f"{said} leave nothing to train on: together they must be below 1")
    sources = sorted({_text(source) for source, _ in pairs}, key=_digest)
    if len(sources) <= len(shares):
        raise ValueError(
            f"the training file has {len(sources)} different sources, too few to keep "
            f"{' and '.join(shares)} apart: name files of their own"
        )
    part_of: dict[str, Split] = {}
    begin = 0
    for split, share in shares.items():
        size = max(1, round(share * len(sources)))
        part_of |= dict.fromkeys(sources[begin : begin + size], split)
        begin += size
    parts: dict[Split, list[Tokens]] = {split: [] for split in ("train", *shares)}
    for pair in pairs:
        parts[part_of.get(_text(pair[0]), "train")].append(pair)
    if not parts["train"]:
        raise ValueError(
            f"of {len(sources)} different sources, {' and '.join(shares)} leave none to train on: "
            "choose smaller shares, or name files of their own"
        )
    return parts


def _text(source: list[str]) -> str:
    return "\x1f".join(source)  # a character that no token of a text file is likely to hold


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
