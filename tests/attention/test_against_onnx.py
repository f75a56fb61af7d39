"""The published test vectors of the ONNX operator ``Attention`` against ours.

Its bool masks are True where a key may be seen, as inside ``mha_lab.attention.functional``; its
rows whose every key is blocked are 0. The vectors are those that the ``onnx`` package generates.
Left out is what attention here does not have: fewer heads of keys than of queries, a cache,
windows, a cap on the scores.
"""

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from onnx.backend.test.case.node import attention as published
from torch import nn
from torch.testing import assert_close

from mha_lab import MultiheadAttention
from mha_lab.attention.functional import attention

ROLES = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def collect():
    """{name: (node, inputs by role, output)} of every vector that applies."""
    found = {}

    def expect(node, inputs, outputs, name, **kwargs):
        given = [role for role, input_name in zip(ROLES, node.input, strict=False) if input_name]
        inputs = dict(zip(given, inputs, strict=True))
        options = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if applies(inputs, options):
            found[name] = options, inputs, outputs[0]

    original, published.expect = published.expect, expect
    state = np.random.get_state()
    try:
        np.random.seed(0)
        with np.errstate(all="ignore"):
            for name in sorted(vars(published.Attention)):
                if name.startswith("export"):
                    getattr(published.Attention, name)()
    finally:
        published.expect = original
        np.random.set_state(state)
    return found


def applies(inputs, options):
    is_plain = not any(options.get(n, 0) > 0 for n in ("softcap", "qk_matmul_output_mode"))
    has_window = any(options.get(f"{n}_window_size", -1) >= 0 for n in ("left", "right"))
    has_cache = bool(set(inputs) - set(ROLES[:4]))
    if has_window or has_cache or not is_plain:
        return False
    q, k, v, *_ = tensors(options, inputs)
    return q.shape[1] == k.shape[1] == v.shape[1]


def heads(array, num_heads):
    """(N, H, L, D) of an array, which may be (N, L, H·D)."""
    dtype = getattr(torch, array.dtype.name)
    x = torch.from_numpy(array.astype(np.float64)).to(dtype)
    return x if x.ndim == 4 else x.unflatten(2, (num_heads, -1)).transpose(1, 2)


def tensors(options, inputs):
    """q, k, v, inside mask and is_causal of a vector."""
    q = heads(inputs["Q"], options.get("q_num_heads"))
    k, v = (heads(inputs[role], options.get("kv_num_heads")) for role in "KV")
    if "scale" in options:  # ours is always 1 / √D
        q = q * (options["scale"] * q.shape[-1] ** 0.5)
    mask = inputs.get("attn_mask")
    if mask is not None:
        mask = torch.from_numpy(mask if mask.dtype == bool else mask.astype(np.float32))
    return q, k, v, mask, bool(options.get("is_causal", 0))


VECTORS = collect()
EACH = pytest.mark.parametrize("name", VECTORS)


def test_enough_vectors_apply():
    assert len(VECTORS) >= 25
    blocked = [name for name in VECTORS if "nan_robustness" in name]
    assert len(blocked) >= 2


@EACH
def test_the_reference_gives_the_published_output(name):
    options, inputs, output = VECTORS[name]
    q, k, v, mask, is_causal = tensors(options, inputs)
    expected = heads(output, options.get("q_num_heads"))
    got, weights = attention(q, k, v, mask, is_causal=is_causal)
    tolerance = TOLERANCE[q.dtype]
    assert got.dtype == expected.dtype
    assert_close(got, expected, rtol=tolerance, atol=tolerance)
    sums = weights.sum(-1)
    assert_close(sums, (sums > 0.5).to(sums.dtype))  # 1, or 0 where all is blocked


@EACH
def test_the_module_gives_the_published_output(name):
    """With projections that change nothing; its masks mean the opposite, so ``~``."""
    options, inputs, output = VECTORS[name]
    q, k, v, mask, is_causal = tensors(options, inputs)
    expected = heads(output, options.get("q_num_heads"))
    N, H, _, D = q.shape
    if v.shape[-1] != D:  # the module's heads are all equally wide
        v, expected = (F.pad(x, (0, D - x.shape[-1]))[..., :D] for x in (v, expected))
    module = MultiheadAttention(H * D, H, bias=False, dtype=q.dtype)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.eye(H * D).repeat(3, 1))
        nn.init.eye_(module.out_proj.weight)
    if mask is not None and mask.dtype == torch.bool:
        mask = ~mask
    if mask is not None and mask.ndim == 3:
        mask = mask.expand(N, *mask.shape[-3:])  # theirs is (H, L, S)
    query, key, value = (x.transpose(1, 2).flatten(2) for x in (q, k, v))
    got, _ = module(query, key, value, attn_mask=mask, is_causal=is_causal)
    tolerance = TOLERANCE[q.dtype]
    got = got.unflatten(2, (H, D)).transpose(1, 2)
    assert_close(got, expected, rtol=tolerance, atol=tolerance)
