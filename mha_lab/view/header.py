"""Everything about a map that travels but its weights, as JSON.

What may change from step to step lies there; a summary's metadata, which TensorBoard reads once,
holds what does not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mha_lab.view.codec import Coding

FORMAT_VERSION = 1
KINDS = ("self", "masked", "cross")

Tokens = list[list[str]] | None


class DamagedMapError(ValueError):
    """What lies in an event file is not a whole attention map of a version known here."""


@dataclass(frozen=True)
class Header:
    """Everything about a stored map but its weights.

    Attributes:
        name: The module's path, numbered when it was called more than once.
        kind: "self", "masked" or "cross".
        shape: (N, H, L, S).
        coding: How the codes become weights.
        query_tokens: N lists of L labels, or None.
        key_tokens: N lists of S labels, or None.
        samples: Which samples of the batch these are, or None when that is unknown.
        heads: Which heads these are, or None when they were averaged or that is unknown.
        size: (L, S) before the map was pooled, or None.
        scores: Score name to one number a head, (H,), or one a sample and head, (N, H).
        pool: What a pooled map holds of each block: "mean" or "max".
        key_heads: Which head of keys each head reads, where several read one; else None.
        images: N images whose patches the keys are, each {"src", "grid", "first"}: a data address,
            rows and columns of patches, and how many tokens come before them; or None.
        measure: What its numbers are: "weights", "value-weighted" or "rollout".
    """

    name: str
    kind: str
    shape: tuple[int, int, int, int]
    coding: Coding
    query_tokens: Tokens = None
    key_tokens: Tokens = None
    samples: list[int] | None = None
    heads: list[int] | None = None
    size: list[int] | None = None
    scores: Mapping[str, Any] = field(default_factory=dict)
    pool: str = "mean"
    key_heads: list[int] | None = None
    images: list[dict[str, Any]] | None = None
    measure: str = "weights"

    def to_json(self) -> bytes:
        """The header as the first of the two strings."""
        return json.dumps(self.content(), separators=(",", ":"), allow_nan=False).encode("ascii")

    def content(self) -> dict[str, Any]:
        """What is written, as plain values."""
        return {
            "version": FORMAT_VERSION,
            "name": self.name,
            "kind": self.kind,
            "shape": self.shape,
            "bits": self.coding.bits,
            "zero": self.coding.zero,
            "levels": self.coding.levels,
            "scale": self.coding.scale,
            "query_tokens": self.query_tokens,
            # Self-attention has the same tokens twice; they are written once.
            "key_tokens": "same" if self.key_tokens == self.query_tokens else self.key_tokens,
            "samples": self.samples,
            "heads": self.heads,
            "size": self.size,
            "scores": {name: finite(values) for name, values in self.scores.items()},
            "pool": self.pool,
            "key_heads": self.key_heads,
            "images": self.images,
            "measure": self.measure,
        }

    @classmethod
    def from_json(cls, text: bytes) -> Header:
        """Read a header.

        Raises:
            DamagedMapError: It is not JSON, lacks something, is inconsistent, or has a version
                that this release does not know.
        """
        try:
            content = json.loads(text)
            if content["version"] != FORMAT_VERSION:
                raise DamagedMapError(
                    f"the map has format version {content['version']!r} and this release of "
                    f"mha_lab reads version {FORMAT_VERSION}; install the newer release"
                )
            query, key = content["query_tokens"], content["key_tokens"]
            header = cls(
                name=str(content["name"]),
                kind=str(content["kind"]),
                shape=four(content["shape"]),
                coding=Coding(
                    int(content["bits"]),
                    int(content["zero"]),
                    int(content["levels"]),
                    float(content["scale"]),
                ),
                query_tokens=query,
                key_tokens=query if key == "same" else key,
                samples=content["samples"],
                heads=content["heads"],
                size=content["size"],
                scores=dict(content["scores"]),
                pool=str(content.get("pool", "mean")),  # older files lack the last four
                key_heads=content.get("key_heads"),
                images=content.get("images"),
                measure=str(content.get("measure", "weights")),
            )
            _check(header)
        except DamagedMapError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DamagedMapError("the map's header cannot be read") from error
        return header


def finite(values: Any) -> Any:
    """Nested numbers with None in place of NaN and infinity, which JSON does not know."""
    if isinstance(values, list | tuple):
        return [finite(value) for value in values]
    return None if values is None or not np.isfinite(values) else float(f"{values:.6g}")


def four(shape: Sequence[int]) -> tuple[int, int, int, int]:
    """A shape (N, H, L, S) as whole numbers of Python.

    Raises:
        ValueError: If it has not four of them.
    """
    n, h, rows, columns = (int(size) for size in shape)
    return n, h, rows, columns


def _check(header: Header) -> None:
    """Refuse what would break a reader later; every number here came from a file."""
    coding = header.coding
    n, h, rows, columns = header.shape
    whole = (
        header.kind in KINDS
        and min(header.shape) >= 0
        and coding.bits in (8, 16)
        and coding.levels >= 1
        and 0 <= coding.zero <= coding.zero + coding.levels < coding.not_a_number
        and np.isfinite(coding.scale)
        and _is_tokens(header.query_tokens, n, rows)
        and _is_tokens(header.key_tokens, n, columns)
        and (header.heads is None or len(header.heads) == h)
        and (header.samples is None or len(header.samples) == n)
        and all(np.shape(scores) in ((h,), (n, h)) for scores in header.scores.values())
        and header.pool in ("mean", "max")
        and (header.key_heads is None or len(header.key_heads) == h)
        and (header.images is None or _are_images(header.images, n, columns))
    )
    if not whole:
        raise DamagedMapError("the map's header contradicts itself")


def _are_images(images: Any, samples: int, columns: int) -> bool:
    """Whether each sample has an image of its own, made of as many patches as there are keys."""
    return len(images) == samples and all(
        str(image["src"]).startswith("data:image/")
        and image["first"] >= 0
        and image["first"] + image["grid"][0] * image["grid"][1] == columns
        for image in images
    )


def _is_tokens(tokens: Any, samples: int, length: int) -> bool:
    if tokens is None:
        return True
    return len(tokens) == samples and all(
        len(row) == length and all(isinstance(token, str) for token in row) for row in tokens
    )
