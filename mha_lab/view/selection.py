"""Part of a packed map: some of its samples, or smaller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mha_lab.view.codec import encode
from mha_lab.view.header import Header, Tokens
from mha_lab.view.packed import pack, unpack_weights
from mha_lab.view.pooling import pool_tokens, pool_weights


def chosen_part(
    header: Header, packed: bytes, samples: Sequence[int] | None, max_size: int | None
) -> tuple[bytes, bytes]:
    """The two strings of some samples of a map, pooled where it is longer than max_size.

    Args:
        header: The map's.
        packed: Its codes.
        samples: Which of its samples; None means all.
        max_size: The largest length along each axis; None means any.

    Raises:
        DamagedMapError: The codes are damaged.
    """
    n, _, length, source = header.shape
    chosen = list(range(n)) if samples is None else list(samples)
    is_small = max_size is None or max(length, source) <= max_size
    if chosen == list(range(n)) and is_small:
        return header.to_json(), packed
    weights = unpack_weights(header, packed)[chosen]
    # Of what was pooled before, more of the same; a whole map is shown as means.
    was_pooled = header.size not in (None, [length, source])
    pool = header.pool if was_pooled or is_small else "mean"
    small = weights if is_small or max_size is None else pool_weights(weights, max_size, pool)
    coding, codes = encode(small)
    rows, columns = small.shape[2:]

    def labels(tokens: Tokens, whole: int, size: int) -> Tokens:
        return tokens and [pool_tokens(tokens[i], whole, size) for i in chosen]

    def of_samples(values: Any) -> Any:
        return [values[i] for i in chosen] if np.ndim(values) == 2 else values

    about = replace(
        header,
        shape=(len(chosen), header.shape[1], rows, columns),
        coding=coding,
        query_tokens=labels(header.query_tokens, length, rows),
        key_tokens=labels(header.key_tokens, source, columns),
        samples=[(header.samples or list(range(n)))[i] for i in chosen],
        size=header.size or [length, source],
        pool=pool,
        scores={name: of_samples(values) for name, values in header.scores.items()},
        images=[header.images[i] for i in chosen] if header.images and is_small else None,
    )
    return pack(about, codes)
