"""Heads that share keys are known as such, although the keys were repeated before the call."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mha_lab import record_attention
from mha_lab.recording.shared_keys import shared_keys

N, L, S, D = 2, 5, 7, 3


class Repeating(nn.Module):
    """Grouped-query attention with its keys and values repeated, as much code does it."""

    def __init__(self, repeat, *, by_hand):
        super().__init__()
        self.repeat = repeat
        self.by_hand = by_hand

    def forward(self, q, k, v):
        k, v = self.repeat(k), self.repeat(v)
        if not self.by_hand:
            return F.scaled_dot_product_attention(q, k, v)
        return (q @ k.mT).softmax(-1) @ v


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize(
    ("repeat", "expected"),
    [
        (lambda k: k.repeat_interleave(3, 1), (0, 0, 0, 1, 1, 1)),
        (lambda k: k[:, :, None].expand(-1, -1, 3, -1, -1).flatten(1, 2), (0, 0, 0, 1, 1, 1)),
        (lambda k: k.repeat(1, 3, 1, 1), (0, 1, 0, 1, 0, 1)),
        (lambda k: k[:, :1].expand(-1, 6, -1, -1), (0,) * 6),
        (lambda k: torch.cat([k, k + 1, k + 2], 1), None),
    ],
)
def test_repeated_keys(repeat, expected, by_hand):
    torch.manual_seed(0)
    q, k, v = torch.randn(N, 6, L, D), torch.randn(N, 2, S, D), torch.randn(N, 2, S, D)
    model = Repeating(repeat, by_hand=by_hand)
    for chosen in (None, [4, 1]):
        with record_attention(model, softmax=True, heads=chosen) as maps:
            model(q, k, v)
        heads = chosen or range(6)
        assert maps[0].key_heads == (expected and tuple(expected[head] for head in heads))
    with record_attention(model, softmax=True, average_heads=True) as maps:
        model(q, k, v)
    assert maps[0].key_heads is None


def test_keys_that_are_alike_in_part_are_not_shared():
    keys = torch.randn(N, 1, S, D).repeat(1, 2, 1, 1)
    assert shared_keys(keys) == [0, 0]
    keys[1, 1, 2, 0] += 1  # of another sample, and so no largest of the first
    assert shared_keys(keys) is None


def test_where_nothing_can_be_told():
    assert shared_keys(torch.zeros(N, 2, S, D)) is None
    assert shared_keys(torch.randn(0, 2, S, D)) is None
    assert shared_keys(torch.randn(N, 2, 0, D)) is None
    assert shared_keys(torch.randn(N, 1, S, D)) is None
    told = []

    def look(keys):
        told.append(shared_keys(keys))
        return keys

    torch.func.vmap(look)(torch.ones(3, N, 2, S, D))
    assert told == [None]


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_a_model_of_transformers(implementation):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=23, hidden_size=24, intermediate_size=19, num_hidden_layers=1,
        num_attention_heads=6, num_key_value_heads=2, attn_implementation=implementation,
    )  # fmt: skip
    torch.manual_seed(5)
    model = transformers.LlamaModel(config).eval()
    with record_attention(model, softmax=True) as maps:
        model(torch.randint(1, 23, (2, 7)))
    assert [one.key_heads for one in maps] == [(0, 0, 0, 1, 1, 1)]
