"""The recorder on torch's own modules and functions, against what torch itself says."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from mha_lab import record_attention

N, L, S, E, H = 3, 5, 7, 22, 2

CAUSAL = nn.Transformer.generate_square_subsequent_mask(S)


def padding(length, *lengths):
    return torch.arange(length) >= torch.tensor(lengths)[:, None]


def sdpa_by_hand(q, k, *, mask=None, scale=None, is_causal=False):
    """The distribution in float64, one query at a time."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.einsum("...ld,...sd->...ls", q.double(), k.double()) * scale
    if mask is not None and mask.dtype != torch.bool:
        scores = scores + mask.double()
    allowed = torch.ones_like(scores, dtype=torch.bool)
    if mask is not None and mask.dtype == torch.bool:
        allowed &= mask
    if is_causal:
        allowed &= torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    allowed &= scores > -torch.inf
    exps = torch.where(allowed, (scores - scores.amax()).exp(), 0.0)
    return (exps / exps.sum(-1, keepdim=True)).nan_to_num(0.0).float()


class Sdpa(nn.Module):
    """A module that makes one call."""

    def __init__(self, **kwargs):
        super().__init__()
        self.kwargs = kwargs

    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, **self.kwargs)


def record_one(module, *args, options=None, **kwargs):
    with record_attention(module, **(options or {})) as maps:
        module(*args, **kwargs)
    (one,) = maps
    return one


# --- nn.Transformer: line 17 of the cases -----------------------------------------------------


@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
@pytest.mark.parametrize("padded", [False, True])
def test_transformer_records_every_call_and_answers_the_same(mode, padded):
    model = nn.Transformer(E, H, 2, 2, 13, batch_first=True).train(mode == "train")
    source, target = torch.randn(N, L, E), torch.randn(N, S, E)
    pad = padding(L, 5, 4, 2) if padded else None
    kwargs = {
        "tgt_mask": CAUSAL,
        "tgt_is_causal": True,
        "src_key_padding_mask": pad,
        "memory_key_padding_mask": pad,
    }
    with torch.set_grad_enabled(mode != "no_grad"):
        torch.manual_seed(1)
        expected = model(source, target, **kwargs)
        torch.manual_seed(1)
        with record_attention(model) as maps:
            output = model(source, target, **kwargs)
    assert torch.equal(output, expected)
    assert [(one.name, one.kind) for one in maps] == [
        ("encoder.layers.0.self_attn", "self"),
        ("encoder.layers.1.self_attn", "self"),
        ("decoder.layers.0.self_attn", "masked"),
        ("decoder.layers.0.multihead_attn", "cross"),
        ("decoder.layers.1.self_attn", "masked"),
        ("decoder.layers.1.multihead_attn", "cross"),
    ]
    for one in maps:
        assert one.weights.shape[:2] == (N, H)
        assert not one.weights.requires_grad
        assert_close(one.weights.sum(-1), torch.ones(one.weights.shape[:3]))
        if padded and one.kind != "masked":
            assert (one.weights[2, :, :, 2:] == 0).all()
        if one.kind == "masked":
            assert (one.weights.triu(1) == 0).all()
    # By hand: the first layer sees the input itself.
    for one, attention, q, k, mask in [
        (maps[0], model.encoder.layers[0].self_attn, source, source, pad),
        (maps[2], model.decoder.layers[0].self_attn, target, target, None),
    ]:
        w_q, w_k, _ = attention.in_proj_weight.chunk(3)
        b_q, b_k, _ = attention.in_proj_bias.chunk(3)
        q = (q @ w_q.T + b_q).unflatten(-1, (H, -1)).transpose(1, 2)
        k = (k @ w_k.T + b_k).unflatten(-1, (H, -1)).transpose(1, 2)
        allowed = None if mask is None else ~mask[:, None, None, :]
        expected = sdpa_by_hand(q, k, mask=allowed, is_causal=one.kind == "masked")
        assert_close(one.weights, expected, atol=1e-6, rtol=0)


def test_encoder_on_its_fused_path_is_recorded():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(E, H, 13, batch_first=True), 2)
    encoder.eval()
    with torch.inference_mode(), record_attention(encoder) as maps:
        encoder(torch.randn(N, L, E), src_key_padding_mask=padding(L, 5, 3, 1))
    assert [one.name for one in maps] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert not maps[0].weights.is_inference()


def test_nested_input_of_the_fused_path():
    layer = nn.TransformerEncoderLayer(E, H, 13, batch_first=True).eval()
    nested = torch.nested.nested_tensor([torch.randn(3, E), torch.randn(5, E)])
    with torch.no_grad():
        expected = layer(nested)
        one = record_one(layer, nested)
        padded = record_one(
            layer, nested.to_padded_tensor(0.0), src_key_padding_mask=padding(5, 3, 5)
        )
        with record_attention(layer):
            output = layer(nested)
    assert torch.equal(output.to_padded_tensor(0.0), expected.to_padded_tensor(0.0))
    assert_close(one.weights, padded.weights)
    assert (one.weights[0, :, :, 3:] == 0).all()


# --- nn.MultiheadAttention: every way to construct and to call it -----------------------------


@pytest.mark.parametrize(
    ("bias", "bias_kv", "zero", "separate"), list(itertools.product([False, True], repeat=4))
)
@pytest.mark.parametrize("masked", ["", "attn", "padding", "both", "float"])
def test_multihead_attention_equals_its_own_weights(bias, bias_kv, zero, separate, masked):
    dims = {"kdim": 3, "vdim": 11} if separate else {}
    module = nn.MultiheadAttention(
        E, H, bias=bias, add_bias_kv=bias_kv, add_zero_attn=zero, **dims
    ).eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    query = torch.randn(L, N, E)
    key, value = torch.randn(S, N, dims.get("kdim", E)), torch.randn(S, N, dims.get("vdim", E))
    masks = {
        "": {},
        "attn": {"attn_mask": torch.rand(N * H, L, S) > 0.7},
        "padding": {"key_padding_mask": padding(S, 7, 4, 2)},
        "both": {
            "attn_mask": torch.rand(L, S).gt(0.8) & (torch.arange(S) > 0),
            "key_padding_mask": padding(S, 7, 4, 2),
        },
        "float": {"attn_mask": torch.randn(L, S), "key_padding_mask": torch.randn(N, S)},
    }[masked]
    _, expected = module(query, key, value, average_attn_weights=False, **masks)
    for need_weights in (True, False):
        one = record_one(module, query, key, value, need_weights=need_weights, **masks)
        assert one.name == "MultiheadAttention"
        assert one.kind == "cross"
        # A weight is as wrong as its score, which is a sum of a dozen products of up to 10.
        assert_close(one.weights, expected.nan_to_num(0.0), atol=1e-5, rtol=0)


def test_unbatched_call():
    module = nn.MultiheadAttention(E, H)
    query, mask = torch.randn(L, E), torch.rand(H, L, L) > 0.9
    _, expected = module(query, query, query, attn_mask=mask, average_attn_weights=False)
    one = record_one(module, query, query, query, attn_mask=mask)
    assert_close(one.weights, expected[None].nan_to_num(0.0))


def test_static_keys_of_the_function():
    class Static(nn.Module):
        def forward(self, query, keys):
            return F.multi_head_attention_forward(
                query, query, query, E, H, torch.eye(3 * E)[:, :E], None, None, None, False, 0.0,
                torch.eye(E), None, static_k=keys, static_v=keys,
            )  # fmt: skip

    query, keys = torch.randn(L, N, E), torch.randn(N * H, S, E // H)
    q = query.view(L, N, H, -1).permute(1, 2, 0, 3)
    expected = sdpa_by_hand(q, keys.view(N, H, S, -1))
    assert_close(record_one(Static(), query, keys).weights, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("need_weights", [True, False])
def test_the_causal_hint_means_what_it_means_in_torch(need_weights):
    module = nn.MultiheadAttention(E, H, batch_first=True)
    x = torch.randn(N, S, E)
    kwargs = {"attn_mask": CAUSAL, "is_causal": True, "need_weights": need_weights}
    one = record_one(module, x, x, x, **kwargs)
    _, expected = module(x, x, x, attn_mask=CAUSAL, average_attn_weights=False)
    assert one.kind == "masked"
    assert_close(one.weights, expected, atol=1e-6, rtol=0)


def test_weights_are_those_before_dropout():
    module = nn.MultiheadAttention(E, H, dropout=0.5, batch_first=True)
    x = torch.randn(N, L, E)
    trained = record_one(module.train(), x, x, x).weights
    evaluated = record_one(module.eval(), x, x, x).weights
    assert_close(trained, evaluated, atol=1e-6, rtol=0)


# --- F.scaled_dot_product_attention -----------------------------------------------------------


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("shape", [(), (N,), (N, H), (2, N, H)])
def test_sdpa(scale, is_causal, shape):
    q, k = torch.randn(*shape, L, 11), torch.randn(*shape, S, 11)
    one = record_one(Sdpa(scale=scale, is_causal=is_causal), q, k)
    expected = sdpa_by_hand(q, k, scale=scale, is_causal=is_causal)
    shape4 = {0: (1, 1), 1: (N, 1), 2: (N, H), 3: (2, N * H)}[len(shape)]
    assert_close(one.weights, expected.view(*shape4, L, S), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "mask_shape", [(L, S), (N, 1, L, S), (1, H, L, S), (H, L, S), (N, H, L, S), (N, 1, 1, S)]
)
@pytest.mark.parametrize("dtype", ["bool", "float"])
def test_sdpa_masks_broadcast(mask_shape, dtype):
    q, k = torch.randn(N, H, L, 11), torch.randn(N, H, S, 11)
    mask = torch.rand(mask_shape) > 0.4 if dtype == "bool" else torch.randn(mask_shape)
    expected = sdpa_by_hand(q, k, mask=mask)
    one = record_one(Sdpa(attn_mask=mask), q, k)
    assert_close(one.weights, expected, atol=1e-6, rtol=0)
    chosen = record_one(Sdpa(attn_mask=mask), q, k, options={"samples": [2, 0], "heads": [1]})
    assert_close(chosen.weights, expected[[2, 0]][:, [1]], atol=1e-6, rtol=0)
    if dtype == "bool":
        assert (one.weights[~mask.expand(N, H, L, S)] == 0).all()


def test_grouped_queries():
    q, k = torch.randn(N, 6, L, 11), torch.randn(N, 2, S, 11)
    expected = sdpa_by_hand(q, k.repeat_interleave(3, dim=1))
    one = record_one(Sdpa(enable_gqa=True), q, k)
    assert_close(one.weights, expected, atol=1e-6, rtol=0)
    chosen = record_one(Sdpa(enable_gqa=True), q, k, options={"heads": [5, 2]})
    assert_close(chosen.weights, expected[:, [5, 2]], atol=1e-6, rtol=0)


def test_joined_batch_and_heads_are_split_where_the_module_tells_its_heads():
    class Joined(nn.Module):
        num_heads = H

        def forward(self, x):
            q = x.view(N, L, H, 11).transpose(1, 2).reshape(N * H, L, 11)
            return F.scaled_dot_product_attention(q, q, q)

    x = torch.randn(N, L, E)
    q = x.view(N, L, H, 11).transpose(1, 2)
    assert_close(record_one(Joined(), x).weights, sdpa_by_hand(q, q), atol=1e-6, rtol=0)


def test_a_row_without_any_key_has_weights_of_zero():
    q = torch.randn(N, H, L, 11)
    mask = torch.ones(L, L, dtype=torch.bool)
    mask[2] = False
    weights = record_one(Sdpa(attn_mask=mask), q, q).weights
    assert (weights[:, :, 2] == 0).all()
    assert_close(weights.sum(-1)[:, :, [0, 1, 3, 4]], torch.ones(N, H, 4))


def test_jagged_nested_tensors():
    rows = [torch.randn(3, 16), torch.randn(5, 16)]
    q = torch.nested.nested_tensor(rows, layout=torch.jagged).unflatten(-1, (2, 8)).transpose(1, 2)
    weights = record_one(Sdpa(), q, q).weights
    assert weights.shape == (2, 2, 5, 5)
    for i, row in enumerate(rows):
        x = row.view(-1, 2, 8).transpose(0, 1)
        assert_close(weights[i, :, : len(row), : len(row)], sdpa_by_hand(x, x), atol=1e-6, rtol=0)
    assert weights[0, :, 3:].abs().sum() == weights[0, :, :, 3:].abs().sum() == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_types(dtype):
    q, k = torch.randn(N, H, L, 11, dtype=dtype), torch.randn(N, H, S, 11, dtype=dtype)
    weights = record_one(Sdpa(), q, k).weights
    assert weights.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert_close(weights.float(), sdpa_by_hand(q, k), atol=1e-6, rtol=0)


def test_autocast_rounds_as_the_model_does():
    q = torch.randn(N, H, L, 11)
    with torch.autocast("cpu", torch.bfloat16):
        weights = record_one(Sdpa(), q, q).weights
    assert weights.dtype == torch.float32
    expected = sdpa_by_hand(q.bfloat16(), q.bfloat16())
    assert_close(weights, expected, atol=1e-6, rtol=0)


def test_exported_program():
    q, k = torch.randn(N, H, L, 11), torch.randn(N, H, S, 11)
    exported = torch.export.export(Sdpa(is_causal=True), (q, k)).module()
    weights = record_one(exported, q, k).weights
    assert_close(weights, sdpa_by_hand(q, k, is_causal=True), atol=1e-6, rtol=0)


def test_vmap_joins_what_it_maps_over_with_the_batch():
    module = Sdpa()
    q, k = torch.randn(N, 11, H, L, 13), torch.randn(11, N, H, S, 13)  # maps over 11
    with record_attention(module, samples=[4, 17]) as maps:
        torch.func.vmap(module, in_dims=(1, 0))(q, k)
    expected = sdpa_by_hand(q.transpose(0, 1), k).reshape(11 * N, H, L, S)[[4, 17]]
    assert_close(maps[0].weights, expected, atol=1e-6, rtol=0)


def test_gradient_transforms():
    module, q = Sdpa(), torch.randn(N, H, L, 11)
    with record_attention(module) as maps:
        torch.func.grad(lambda x: module(x, x).sum())(q)
    assert_close(maps[0].weights, sdpa_by_hand(q, q), atol=1e-6, rtol=0)


def test_empty_batch_and_empty_sequence():
    assert record_one(Sdpa(), torch.randn(0, H, L, 11), torch.randn(0, H, S, 11)).weights.shape == (
        0, H, L, S,
    )  # fmt: skip
    assert record_one(Sdpa(), torch.randn(N, H, 0, 11), torch.randn(N, H, S, 11)).weights.shape == (
        N, H, 0, S,
    )  # fmt: skip
