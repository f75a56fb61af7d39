"""Calls without samples, queries or keys: outputs as unrecorded, and an empty map."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mha_lab import MultiheadAttention, record_attention

H, E, L = 4, 16, 5


class Fused(nn.Module):
    def forward(self, query, key, value):
        q, k, v = (x.unflatten(-1, (H, -1)).transpose(1, 2) for x in (query, key, value))
        return (F.scaled_dot_product_attention(q, k, v),)


class ByHand(nn.Module):
    def forward(self, query, key, value):
        q, k, v = (x.unflatten(-1, (H, -1)).transpose(1, 2) for x in (query, key, value))
        return ((q @ k.mT).softmax(-1) @ v,)


MODULES = {
    "torch": lambda: nn.MultiheadAttention(E, H, batch_first=True),
    "added keys": lambda: nn.MultiheadAttention(
        E, H, batch_first=True, add_bias_kv=True, add_zero_attn=True
    ),
    "ours": lambda: MultiheadAttention(E, H),
    "fused": Fused,
    "by hand": ByHand,
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("max_size", [None, 3])
@pytest.mark.parametrize("mode", ["train", "no_grad"])
def test_an_empty_batch(name, max_size, mode):
    module, x = MODULES[name]().train(mode == "train"), torch.randn(0, L, E)
    with torch.set_grad_enabled(mode == "train"):
        expected = module(x, x, x)[0]
        with record_attention(module, softmax=True, max_size=max_size) as maps:
            output = module(x, x, x)[0]
    assert torch.equal(output, expected)
    (one,) = maps
    keys = L + 2 * (name == "added keys")
    assert one.weights.shape[:2] == (0, H)
    assert one.size == (L, keys)
    assert one.samples == ()
    assert one.scores() == {}
    if max_size is None:
        assert one.weights.shape == (0, H, L, keys)


def test_no_queries():
    q, k = torch.randn(2, 0, E), torch.randn(2, L, E)
    module = MultiheadAttention(E, H)
    with record_attention(module) as maps:
        module(q, k, k)
    assert maps[0].weights.shape == (2, H, 0, L)
