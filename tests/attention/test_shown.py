"""Mechanisms whose weights are seen by a recorder without a word of theirs."""

import torch
from torch import nn
from torch.testing import assert_close

from mha_lab import record_attention
from mha_lab.attention.shown import shows_weights, weigh_values

N, H, L, S, D = 2, 3, 5, 7, 11


class Sigmoid(nn.Module):
    """Makes its weights."""

    def forward(self, q, k, v):
        return weigh_values((q @ k.mT).sigmoid() / S, v, 0.3 if self.training else 0.0)


def linear_weights(q, k, v, eps=1e-6):
    scores = q.exp() @ k.exp().mT
    return scores / (scores.sum(-1, keepdim=True) + eps)


@shows_weights(linear_weights)
def attend_linearly(q, k, v, eps=1e-6):
    q, k = q.exp(), k.exp()
    return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None] + eps)


class Linear(nn.Module):
    """Never makes its weights."""

    def forward(self, q, k, v):
        return attend_linearly(q, k, v=v, eps=0.1)


def inputs(**options):
    return [torch.randn(N, H, length, D, dtype=torch.float64, **options) for length in (L, S, S)]


def test_weights_that_are_made_are_recorded_before_dropout():
    (q, k, v), module = inputs(), Sigmoid()
    for mode in (True, False):
        module.train(mode)
        torch.manual_seed(1)
        expected = module(q, k, v)
        torch.manual_seed(1)
        with record_attention(module) as maps:
            output = module(q, k, v)
        assert torch.equal(output, expected)
        assert_close(maps[0].weights, (q @ k.mT).sigmoid() / S)
    assert_close(maps[0].weights @ v, output)


def test_weights_that_are_never_made_are_computed_beside():
    (q, k, v), module = inputs(requires_grad=True), Linear()
    with record_attention(module, samples=[1]) as maps:
        output = module(q, k, v)
    assert_close(maps[0].weights @ v[1:], output[1:])
    assert torch.autograd.gradcheck(attend_linearly, (q, k, v))
    assert attend_linearly.__name__ == "attend_linearly"


def test_they_compile_and_keep_the_dtype_of_the_values():
    q, k, v = inputs()
    compiled = torch.compile(Sigmoid().eval(), backend="eager", fullgraph=True)
    assert_close(compiled(q, k, v), Sigmoid().eval()(q, k, v))
    half = weigh_values(torch.full((N, H, L, S), 1 / S), v.half())
    assert half.dtype == torch.float16
