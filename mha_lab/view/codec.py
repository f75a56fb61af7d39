"""Attention weights as small whole numbers, and back.

A weight ``w`` becomes ``code = zero + round(levels * sign(w) * sqrt(|w| / scale))``; ``scale`` is
the largest weight of the map. The square root spends the codes where attention lives: near 0.
Maps of up to 16,384 weights take two bytes a weight, larger ones take one.

What comes back differs by at most ``sqrt(|w| * scale) / levels + scale / levels²``:

=====  ======  ============  ==========================  =======================
bytes  levels  error near 1  error near 0.01 (scale 1)   smallest weight kept
=====  ======  ============  ==========================  =======================
2      65534   0.000 015     0.000 001 5                 2e-10 of the largest
1      254     0.003 9       0.000 41                    1.5e-5 of the largest
=====  ======  ============  ==========================  =======================

The largest weight and 0 come back exactly, and only 0 comes back as 0, so a blocked position can
always be told from a faint one. Rows that sum to 1 still do within the sum of those errors. NaN
and infinity, which a diverging model yields, come back as NaN. Maps with negative weights keep
their signs and have half the levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TWO_BYTES_UP_TO = 16_384
"""Maps with more weights than this are written with one byte a weight."""


@dataclass(frozen=True)
class Coding:
    """How the codes of one map are read: ``x = (code - zero) / levels; w = scale * x * |x|``.

    Attributes:
        bits: 8 or 16, unsigned and little-endian; the highest code means "not a number".
        zero: The code of weight 0.
        levels: How many codes lie between weight 0 and ``scale``.
        scale: The largest absolute weight.
    """

    bits: int
    zero: int
    levels: int
    scale: float

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The codes' type, little-endian whatever the machine."""
        return np.dtype(f"<u{self.bits // 8}")

    @property
    def not_a_number(self) -> int:
        """The code that stands for NaN."""
        return int((1 << self.bits) - 1)


def encode(weights: NDArray[np.floating]) -> tuple[Coding, NDArray[np.unsignedinteger]]:
    """Turn weights into codes.

    Args:
        weights: Any shape and floating type.

    Returns:
        The coding, and the codes in the same shape.
    """
    weights = np.asarray(weights, dtype=np.float32)
    finite = np.isfinite(weights)
    size = np.where(finite, np.abs(weights), 0)
    bits = 16 if weights.size <= TWO_BYTES_UP_TO else 8
    signed = bool(np.any(weights[finite] < 0))
    highest = (1 << bits) - 2  # the one above it means NaN
    coding = Coding(
        bits=bits,
        zero=highest // 2 if signed else 0,
        levels=highest // 2 if signed else highest,
        scale=float(size.max(initial=0)) or 1.0,
    )
    steps = np.rint(np.sqrt(size / np.float32(coding.scale)) * coding.levels)
    steps = np.where(size > 0, np.maximum(steps, 1), 0)
    codes = coding.zero + np.where(np.signbit(weights), -steps, steps)
    return coding, np.where(finite, codes, coding.not_a_number).astype(coding.dtype)


def decode(coding: Coding, codes: NDArray[np.unsignedinteger]) -> NDArray[np.float32]:
    """Turn codes back into weights of the same shape, float32."""
    x = (codes.astype(np.float32) - np.float32(coding.zero)) / np.float32(coding.levels)
    weights = np.float32(coding.scale) * x * np.abs(x)
    return np.where(codes == coding.not_a_number, np.float32(np.nan), weights).astype(np.float32)
