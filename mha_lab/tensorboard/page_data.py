"""What of a stored map the Attention tab's page is told, and in which form."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mha_lab.tensorboard.series import Datum
from mha_lab.view.header import Header

_NUMBER = re.compile(r"([0-9]{1,18})", re.ASCII)


def frame(about: dict[str, Any], codes: NDArray[np.unsignedinteger] | None = None) -> bytes:
    """A map of one sample: the length of a JSON header (4 bytes, little-endian), it, the codes.

    Args:
        about: The header; ``bytes``, how many codes follow it, is added.
        codes: (H, L, S); None where there are none.
    """
    content = b"" if codes is None else codes.tobytes()
    header = json.dumps(about | {"bytes": len(content)}).encode("ascii")
    return struct.pack("<I", len(header)) + header + content


def for_page(header: Header, sample: int, datum: Datum) -> dict[str, Any]:
    """What the page needs to draw one sample."""

    def of_sample(tokens: list[list[str]] | None) -> list[str] | None:
        return None if tokens is None else tokens[sample]

    coding = header.coding
    return about_heads(header) | {
        "step": datum.step,
        "wall_time": datum.wall_time,
        "shape": header.shape[1:],
        "size": header.size,
        "coding": {
            "bits": coding.bits,
            "zero": coding.zero,
            "levels": coding.levels,
            "scale": coding.scale,
        },
        "query_tokens": of_sample(header.query_tokens),
        "key_tokens": of_sample(header.key_tokens),
        "pool": header.pool,
        "image": header.images[sample] if header.images else None,
        "measure": header.measure,
    }


def about_heads(header: Header) -> dict[str, Any]:
    """Kind, samples, heads and scores; every score as (N, H)."""
    n, heads = header.shape[:2]
    return {
        "kind": header.kind,
        "samples": header.samples or list(range(n)),
        "heads": header.heads,
        "head_count": heads,
        "key_heads": header.key_heads,
        "scores": {
            name: values if np.ndim(values) == 2 else [values] * n
            for name, values in header.scores.items()
        },
    }


def about_map(content: bytes, tag: str) -> tuple[str, int]:
    """The map's name and its place in the model, from the series' metadata."""
    try:
        about = json.loads(content)
        return str(about["name"]), int(about["place"])
    except (ValueError, KeyError, TypeError):
        return tag, 0  # damaged: the tag has to do


def natural(tag: str) -> list[tuple[int, str]]:
    """A sort key by which layers.2 comes before layers.10."""
    parts = enumerate(_NUMBER.split(tag))
    return [(int(part), "") if i % 2 else (-1, part) for i, part in parts]
