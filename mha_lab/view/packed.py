"""How one attention map travels, in an event file or in a page: a header, and the codes.

A map is two strings. The first is JSON, of :class:`mha_lab.view.header.Header`: the format's
version, the map's name and kind, its shape, how the codes are read, its tokens and its heads'
scores. The second is the codes, (N, H, L, S) in C order, compressed by zlib.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mha_lab.view.codec import decode, encode
from mha_lab.view.header import DamagedMapError, Header, four


def pack(header: Header, codes: NDArray[np.unsignedinteger]) -> tuple[bytes, bytes]:
    """The two strings of a map. Level 1 is 5 times as fast as zlib's default, and 3 % larger."""
    return header.to_json(), zlib.compress(codes.tobytes(), level=1)


def unpack_codes(header: Header, packed: bytes) -> NDArray[np.unsignedinteger]:
    """The codes of a map, (N, H, L, S).

    Raises:
        DamagedMapError: The bytes are damaged, or not as many as the header says.
    """
    expected = int(np.prod(header.shape, dtype=np.int64)) * header.coding.dtype.itemsize
    try:
        # One byte more than expected is enough to notice too many; never inflate without a limit.
        stream = zlib.decompressobj()
        raw = stream.decompress(packed, expected + 1)
    except zlib.error as error:
        raise DamagedMapError("the map's weights cannot be decompressed") from error
    if len(raw) != expected:
        raise DamagedMapError(f"the map has {len(raw)} bytes of weights instead of {expected}")
    if not stream.eof:
        raise DamagedMapError("the map's weights are cut off")
    return np.frombuffer(raw, header.coding.dtype).reshape(header.shape)


def pack_weights(weights: NDArray[np.floating], **about: Any) -> tuple[bytes, bytes]:
    """The two strings of a map, from its weights (N, H, L, S) and the rest of its header."""
    coding, codes = encode(weights)
    return pack(Header(shape=four(weights.shape), coding=coding, **about), codes)


def unpack_weights(header: Header, packed: bytes) -> NDArray[np.float32]:
    """The weights of a map, (N, H, L, S).

    Raises:
        DamagedMapError: The bytes are damaged, or not as many as the header says.
    """
    return decode(header.coding, unpack_codes(header, packed))
