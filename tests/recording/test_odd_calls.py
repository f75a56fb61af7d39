"""Calls of attention that few write, and a recorder that does not understand one."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.testing import assert_close

from mha_lab import record_attention
from mha_lab.recording import watcher

N, H, L, S, D = 3, 2, 5, 7, 11


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, q, k, v):
        return self.function(q, k, v)


def record(function, q, k, v, **options):
    model = Calls(function)
    expected = model(q, k, v)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with record_attention(model, softmax=True, **options) as maps:
            output = model(q, k, v)
    assert torch.equal(output, expected)
    return maps


def inputs(*shape, dtype=torch.float32):
    lengths = (L, S, S)
    return [torch.randn(*shape, length, D, dtype=dtype) for length in lengths]


def weights_of(q, k, mask=None, scale=1.0):
    scores = torch.einsum("...ld,...sd->...ls", q, k) * scale
    return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)


@pytest.mark.parametrize("leading", [(), (N,), (2, N)])
def test_grouped_queries_of_any_number_of_axes(leading):
    q, k, v = torch.randn(*leading, 6, L, D), *torch.randn(2, *leading, 2, S, D)
    maps = record(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), q, k, v)
    expected = weights_of(q, k.repeat_interleave(3, -3), scale=D**-0.5)
    assert_close(maps[0].weights.flatten(), expected.flatten())
    assert maps[0].weights.shape[1] == 6 * (N if len(leading) == 2 else 1)


@pytest.mark.parametrize(("bias", "shift"), [(causal_lower_right, S - L), (causal_upper_left, 0)])
def test_the_causal_masks_of_torch_that_hold_no_numbers(bias, shift):
    q, k, v = inputs(N, H)
    maps = record(lambda *qkv: F.scaled_dot_product_attention(*qkv, bias(L, S)), q, k, v)
    allowed = torch.arange(S) <= torch.arange(L)[:, None] + shift
    assert_close(maps[0].weights, weights_of(q, k, allowed, D**-0.5))


def test_complex_values():
    q, k, v = inputs(N, H, dtype=torch.complex64)
    maps = record(
        lambda q, k, v: (q @ k.mH).abs().softmax(-1).to(v.dtype) @ v, q, k, v, values=True
    )
    assert_close(maps[0].weights, (q @ k.mH).abs().softmax(-1))
    assert_close(maps[0].value_norms, v.abs().square().sum(-1).sqrt())


PARTS = {
    "heads by number": lambda w, v: torch.stack([w[:, h] @ v[:, h] for h in range(H)], 1),
    "heads unbound": lambda w, v: torch.stack([a @ b for a, b in zip(*both(w, v), strict=True)], 1),
    "heads in chunks": lambda w, v: torch.cat(
        [a @ b for a, b in zip(w.chunk(H, 1), v.chunk(H, 1), strict=True)], 1
    ),
    "queries": lambda w, v: torch.cat([w[:, :, :2] @ v, w[:, :, 2:] @ v], 2),
    "queries split": lambda w, v: torch.cat([part @ v for part in w.split([2, 3], 2)], 2),
}


def both(w, v):
    return w.unbind(1), v.unbind(1)


@pytest.mark.parametrize("how", PARTS)
def test_each_part_of_weights_is_a_map(how):
    q, k, v = inputs(N, H)
    maps = record(lambda q, k, v: PARTS[how]((q @ k.mT).softmax(-1), v), q, k, v)
    assert [one.name for one in maps] == ["Calls", "Calls#2"]
    joined = torch.cat([one.weights for one in maps], 1 if "heads" in how else 2)
    assert_close(joined, weights_of(q, k))


def test_parts_along_keys_meet_no_whole_values():
    q, k, v = inputs(N, H)
    model = Calls(
        lambda q, k, v: sum(
            a @ b for a, b in zip((q @ k.mT).softmax(-1).split(4, -1), v.split(4, -2), strict=True)
        )
    )
    with pytest.warns(UserWarning, match="1 softmax"), record_attention(model, softmax=True):
        model(q, k, v)


def test_slot_attention_is_normalised_along_queries_and_then_along_keys():
    def slots(q, k, v):
        weights = (q @ k.mT).softmax(-2) + 1e-8
        weights = weights / weights.sum(-1, keepdim=True)
        return torch.einsum("nhsd,nhls->nhld", v, weights)

    q, k, v = inputs(N, H)
    maps = record(slots, q, k, v)
    weights = (q @ k.mT).softmax(-2) + 1e-8
    assert_close(maps[0].weights, weights / weights.sum(-1, keepdim=True))


def test_exponentials_that_are_computed_twice():
    def twice(q, k, v):
        return (q @ k.mT).exp() / (q @ k.mT).exp().sum(-1, keepdim=True) @ v

    q, k, v = inputs(N, H)
    assert_close(record(twice, q, k, v)[0].weights, weights_of(q, k))


@pytest.mark.slow
def test_an_exported_program_that_is_decomposed():
    layer = nn.TransformerEncoderLayer(22, H, 13, batch_first=True).eval()
    x = torch.randn(N, L, 22)
    program = torch.export.export(layer, (x,)).run_decompositions().module()
    with record_attention(program, softmax=True) as maps:
        program(x)
    with record_attention(layer) as expected:
        layer(x)
    assert_close(maps[0].weights, expected[0].weights)


def test_what_the_recorder_does_not_understand_is_told_and_the_model_goes_on(monkeypatch):
    def fails(*args):
        raise KeyError("odd")

    monkeypatch.setattr(watcher, "weigh", fails)
    q, k, v = inputs(N, H)
    model = Calls(F.scaled_dot_product_attention)
    expected = model(q, k, v)
    told = r"1 attention call was not understood by the recorder \(KeyError: 'odd'\)"
    with pytest.warns(UserWarning, match=told), record_attention(model) as maps:
        output = model(q, k, v)
    assert torch.equal(output, expected)
    assert maps == []
