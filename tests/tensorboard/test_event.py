"""The header that explains a map, and what a damaged one leads to."""

import json
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_lab.view.header import DamagedMapError, Header
from mha_lab.view.packed import pack_weights, unpack_weights

WEIGHTS = np.full((1, 2, 3, 5), 0.2, dtype=np.float32)
ABOUT = {
    "name": "layer",
    "kind": "cross",
    "query_tokens": [["a", "<b>", "\ud800"]],
    "key_tokens": [list("vwxyz")],
    "samples": [4],
    "heads": [1, 3],
    "size": [6, 10],
    "scores": {"entropy": [0.5, float("nan")], "diagonal": [[1.0, 0.0]]},
}


def changed(**changes) -> bytes:
    text, _ = pack_weights(WEIGHTS, **ABOUT)
    return json.dumps(json.loads(text) | changes).encode()


def test_header_comes_back_whole():
    text, packed = pack_weights(WEIGHTS, **ABOUT)
    header = Header.from_json(text)
    kept = {name: getattr(header, name) for name in ABOUT}
    nan_is_null = {"entropy": [0.5, None], "diagonal": [[1.0, 0.0]]}
    assert kept == ABOUT | {"scores": nan_is_null}
    assert header.shape == WEIGHTS.shape
    np.testing.assert_allclose(unpack_weights(header, packed), WEIGHTS, rtol=1e-4)


def test_same_tokens_are_written_once():
    tokens = [["one-and-only", "b", "c"]]
    square = np.zeros((1, 1, 3, 3))
    text, _ = pack_weights(
        square, name="", kind="self", query_tokens=tokens, key_tokens=[list(tokens[0])]
    )
    assert text.count(b"one-and-only") == 1
    assert Header.from_json(text).key_tokens == tokens


def test_a_newer_version_says_so():
    with pytest.raises(DamagedMapError, match=r"version 2 .* install the newer release"):
        Header.from_json(changed(version=2))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        changed(shape=[1, 2, 3]),
        changed(shape=[1, 2, 3, -5]),
        changed(shape=[1, 2, 3, "x"]),
        changed(shape=None),
        changed(kind="<script>"),
        changed(bits=9),
        changed(levels=0),
        changed(levels=65535),
        changed(zero=-1),
        changed(scale=None),
        changed(scale=float("inf")),
        changed(query_tokens=[["a", "b"]]),
        changed(query_tokens=[["a", "b", 3]]),
        changed(query_tokens="abc"),
        changed(query_tokens=7),
        changed(key_tokens=[]),
        changed(heads=[1]),
        changed(samples=[1, 2]),
        changed(scores={"entropy": [1, 2, 3]}),
        changed(scores=[1]),
    ],
)
def test_damaged_headers_are_refused(text):
    with pytest.raises(DamagedMapError):
        Header.from_json(text)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=50).map(lambda text: json.dumps(text).encode()))
def test_no_bytes_raise_anything_else(text):
    with pytest.raises(DamagedMapError):
        Header.from_json(text)


def test_damaged_weights_are_refused():
    text, packed = pack_weights(WEIGHTS, **ABOUT)
    header = Header.from_json(text)
    for damaged in (b"", b"nonsense", packed[:-1], packed[:-9], packed[:10] + b"\0" + packed[11:]):
        with pytest.raises(DamagedMapError):
            unpack_weights(header, damaged)
    _, other = pack_weights(np.zeros((1, 2, 3, 4)), name="", kind="self")
    with pytest.raises(DamagedMapError, match="48 bytes of weights instead of 60"):
        unpack_weights(header, other)


def test_a_bomb_is_not_inflated():
    text, _ = pack_weights(WEIGHTS, **ABOUT)
    bomb = zlib.compress(b"\0" * 50_000_000)
    with pytest.raises(DamagedMapError, match="61 bytes"):
        unpack_weights(Header.from_json(text), bomb)
