"""flex_attention: what its mods make of the scores is what is recorded."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.testing import assert_close

from mha_lab import record_attention

N, H, GROUPS, L, S, D = 2, 6, 3, 5, 7, 11


class Flex(nn.Module):
    def __init__(self, how=flex_attention, **options):
        super().__init__()
        self.how, self.options = how, options

    def forward(self, q, k, v):
        return self.how(q, k, v, **self.options)


def inputs(key_heads=H, length=L, source=S):
    return (
        torch.randn(N, H, length, D),
        torch.randn(N, key_heads, source, D),
        torch.randn(N, key_heads, source, D),
    )


TABLE = torch.linspace(-2, 2, H * (L + S)).view(H, L + S)
LENGTHS = torch.tensor([S, 4])


def relative(score, b, h, q, k):
    return score * 1.5 + TABLE[h, q - k + S - 1]


def causal_and_padded(b, h, q, k):
    return (q + 2 >= k) & (k < LENGTHS[b])


def by_hand(q, k, scale):
    """Loops over every index."""
    scores = torch.full((N, H, L, S), -torch.inf)
    for n in range(N):
        for h in range(H):
            for i in range(L):
                for j in range(S):
                    if i + 2 >= j and j < LENGTHS[n]:
                        one = q[n, h, i] @ k[n, h // (H // k.shape[1]), j] * scale
                        scores[n, h, i, j] = one * 1.5 + TABLE[h, i - j + S - 1]
    return scores.softmax(-1)


@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_score_mod_block_mask_groups_and_scale(how):
    q, k, v = inputs(key_heads=GROUPS)
    mask = create_block_mask(causal_and_padded, N, None, L, S, device="cpu")
    called = flex_attention if how == "eager" else torch.compile(flex_attention, backend="eager")
    module = Flex(called, score_mod=relative, block_mask=mask, scale=0.3, enable_gqa=True)
    expected = module(q, k, v)
    with record_attention(module) as maps:
        output = module(q, k, v)
    assert torch.equal(output, expected)
    (one,) = maps
    assert_close(one.weights, by_hand(q, k, 0.3), atol=1e-6, rtol=1e-5)
    assert_close(one.weights @ v.repeat_interleave(H // GROUPS, 1), output, atol=1e-5, rtol=1e-5)
    with record_attention(module, samples=[1], heads=[4, 1]) as chosen:
        module(q, k, v)
    assert_close(chosen[0].weights, one.weights[[1]][:, [4, 1]])


def test_plain_call_and_rows_without_keys():
    q, k, v = inputs()
    module = Flex()
    with record_attention(module) as maps:
        module(q, k, v)
    assert_close(maps[0].weights, (q @ k.mT / D**0.5).softmax(-1), atol=1e-6, rtol=1e-5)
    nothing = create_block_mask(lambda b, h, q, k: q < 0, None, None, L, S, device="cpu")
    module = Flex(block_mask=nothing)
    with record_attention(module) as maps:
        output = module(q, k, v)
    assert (maps[0].weights == 0).all()
    assert (output == 0).all()


def test_long_ones_are_pooled_block_by_block(monkeypatch):
    monkeypatch.setattr("mha_lab.recording.distribution._BLOCK_ELEMENTS", 2 * N * H * 31)
    q, k, v = inputs(length=29, source=31)
    module = Flex(score_mod=lambda score, b, h, q, k: score - (q - k).abs() * (h + 1))
    with record_attention(module) as whole:
        module(q, k, v)
    with record_attention(module, max_size=7) as pooled:
        module(q, k, v)
    assert_close(pooled[0].weights, F.adaptive_avg_pool2d(whole[0].weights, 7))
    assert_close(pooled[0].scores(), whole[0].scores())
