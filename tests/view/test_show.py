"""Lists of maps that show themselves: what goes into a page, and what is said of the rest."""

import base64
import html
import json
import re
import zlib

import numpy as np
import pytest
import torch
from pages import make_maps, patterned
from torch import nn

from mha_lab import AttentionMap, record_attention, show
from mha_lab.view.codec import Coding, decode
from mha_lab.view.gallery import Gallery
from mha_lab.view.header import Header
from mha_lab.view.packed import pack_weights, unpack_weights
from mha_lab.view.pooling import blocks, pool_tokens, pool_weights
from mha_lab.view.selection import chosen_part


def about(page: str) -> dict:
    return json.loads(re.search(r'id="about">(.*?)</script>', page, re.DOTALL)[1])


def weights_of(page: str, part: int) -> np.ndarray:
    header = about(page)["headers"][part]
    text = re.search(rf'id="part{part}">(.*?)</script>', page)[1]
    coding = Coding(*(header[name] for name in ("bits", "zero", "levels", "scale")))
    codes = np.frombuffer(zlib.decompress(base64.b64decode(text)), coding.dtype)
    return decode(coding, codes.reshape(header["shape"]))


def test_what_was_recorded_is_a_list_that_shows_itself():
    module, x = nn.MultiheadAttention(6, 2, batch_first=True), torch.randn(2, 5, 6)
    with record_attention(module) as maps:
        module(x, x, x)
    assert isinstance(maps, list)
    assert maps[:] == maps
    assert isinstance(maps[:1], Gallery)
    assert repr(maps) == repr(list(maps))
    cell = maps._repr_html_()
    assert cell.startswith("<iframe title=")
    page = html.unescape(re.search(r'srcdoc="(.*)"></iframe>', cell, re.DOTALL)[1])
    np.testing.assert_allclose(weights_of(page, 0), maps[0].weights.numpy(), atol=2e-5)
    assert Gallery()._repr_html_() is None


def test_a_page_needs_nothing_from_outside_and_nothing_breaks_out():
    hostile = "</script><script>alert(1)</script>"
    page = make_maps(tokens=[hostile] * 11).show().html
    assert set(re.findall(r"https?://[^\"' )]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert page.count("</script>") == page.count("<script")
    assert hostile not in page
    assert about(page)["shared"][0][0][0] == hostile


def test_panes_are_named_by_what_they_are():
    a, b = make_maps(), make_maps(seed=3)

    def runs(shown):
        found = about(shown.html)
        return [run["run"] for run in found["runs"]], found["state"].get("vs")

    assert runs(a.show()) == (["maps"], None)
    assert runs(show(before=a, after=b)) == (["before", "after"], "after")
    assert runs(b.show(before=a)) == (["before", "after"], "after")
    assert runs(a.show(after=b)) == (["before", "after"], "after")
    assert runs(a.show(before=a, after=b)) == (["before", "after"], "after")
    assert runs(show({"x": a, "y": b, "z": a})) == (["x", "y", "z"], "y")
    assert runs(Gallery(a, title="mine").show()) == (["mine"], None)


def test_as_many_samples_as_fit_and_it_is_said():
    page = make_maps(1, 2, 5, n=11).show().html
    assert about(page)["headers"][0]["samples"] == list(range(8))
    assert about(page)["notes"] == ["8 of 11 samples are shown; samples= chooses others."]
    page = make_maps(1, 2, 5, n=11).show(samples=[9, 3]).html
    assert about(page)["headers"][0]["samples"] == [9, 3]
    assert about(page)["notes"] == []


def test_what_is_too_large_is_pooled_and_it_is_said(monkeypatch):
    monkeypatch.setattr("mha_lab.view.shown.LARGEST", 2 * 70 * 70)
    maps = make_maps(1, 2, 97)
    page = maps.show().html
    assert about(page)["headers"][0]["shape"] == [1, 2, 64, 64]
    assert about(page)["headers"][0]["size"] == [97, 97]
    assert about(page)["notes"] == ["Maps larger than 64 are shown as means; max_size= chooses."]
    scores = about(page)["headers"][0]["scores"]
    np.testing.assert_allclose(scores["entropy"], maps[0].scores()["entropy"], rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"view": "sideways"}, "view='sideways' must be one of heads, map, lines"),
        ({"curve": "square"}, "curve='square' must be one of linear, root, log"),
        ({"layer": "decoder.9"}, r"layer='decoder.9' is not among the maps: encoder\.layers\.0"),
        ({"max_size": 0}, "max_size=0 must be at least 1"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        make_maps().show(**options)


def test_nothing_to_show_and_another_suffix(tmp_path):
    with pytest.raises(ValueError, match="no maps to show"):
        show([])
    with pytest.raises(ValueError, match=r"must end in \.html"):
        make_maps().save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="by name, or before= and after="):
        show({"a": make_maps()}, before=make_maps())


def test_pooling_is_that_of_torch():
    weights = patterned(2, 13, 17)
    expected = nn.functional.adaptive_avg_pool2d(weights, (7, 7))
    np.testing.assert_allclose(pool_weights(weights.numpy(), 7), expected, atol=1e-6)
    assert pool_weights(weights.numpy(), 17).shape == weights.shape
    assert blocks(5, 2) == [(0, 3), (2, 5)]
    assert pool_tokens(["a", "b", "c"], 5, 2) == ["a…c", "c…"]


def test_part_of_a_packed_map():
    weights = patterned(3, 7, n=5).numpy()
    tokens = [[f"{n}{i}" for i in range(7)] for n in range(5)]
    text, packed = pack_weights(
        weights, name="x", kind="self", query_tokens=tokens, key_tokens=tokens
    )
    header = Header.from_json(text)
    small, codes = chosen_part(header, packed, [4, 1], 3)
    small = Header.from_json(small)
    assert (small.shape, small.samples, small.size) == ((2, 3, 3, 3), [4, 1], [7, 7])
    assert small.query_tokens[0] == ["40…42", "42…44", "44…46"]
    np.testing.assert_allclose(
        unpack_weights(small, codes), pool_weights(weights[[4, 1]], 3), atol=1e-4
    )
    assert chosen_part(header, packed, None, 7)[1] is packed


@pytest.mark.parametrize(("size", "pool"), [([7, 7], "mean"), ([20, 20], "max")])
def test_a_smaller_map_says_how_it_was_pooled(size, pool):
    weights = torch.rand(1, 2, 7, 7)
    text, packed = pack_weights(weights.numpy(), name="x", kind="self", pool="max", size=size)
    text, codes = chosen_part(Header.from_json(text), packed, None, 3)
    small = Header.from_json(text)
    pooled = {"mean": nn.functional.adaptive_avg_pool2d, "max": nn.functional.adaptive_max_pool2d}
    assert small.pool == pool
    np.testing.assert_allclose(unpack_weights(small, codes), pooled[pool](weights, 3), atol=1e-4)


def test_a_head_that_shares_keys_and_an_averaged_one_travel():
    one = AttentionMap("x", patterned(4, 5), key_heads=(0, 0, 1, 1))
    mean = AttentionMap("y", patterned(1, 5), heads=None)
    headers = about(Gallery([one, mean]).show().html)["headers"]
    assert headers[0]["key_heads"] == [0, 0, 1, 1]
    assert headers[1]["heads"] is None
