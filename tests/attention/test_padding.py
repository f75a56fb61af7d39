"""Attention to the keys that are no padding against the reference."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from mha_lab import MultiheadAttention, record_attention
from mha_lab.attention import functional
from mha_lab.attention.multihead import padding
from mha_lab.attention.multihead.padding import attend_without_padding, is_worth_cutting

N, H, L, S, D = 5, 3, 7, 11, 2
RIGHT, LEFT, BOTH, HOLES, NONE = (range(4), range(6, 11), range(2, 9), (1, 2, 5, 9), ())


@pytest.fixture
def mask() -> Tensor:
    """A sample each with padding right, left, on both sides and between, and of padding alone."""
    allowed = torch.zeros(N, 1, 1, S, dtype=torch.bool)
    for n, keys in enumerate((RIGHT, LEFT, BOTH, HOLES, NONE)):
        allowed[n, ..., list(keys)] = True
    return allowed


def heads(**options) -> tuple[Tensor, ...]:
    drawn = torch.Generator().manual_seed(3)
    shapes = ((N, H, L, D), (N, H, S, D), (N, H, S, D))
    return tuple(torch.randn(*each, generator=drawn, **options) for each in shapes)


def test_values_and_gradients(mask):
    qkv = heads(dtype=torch.float64)
    for x in qkv:
        x.requires_grad_()
    ours = attend_without_padding(*qkv, mask)
    expected, _ = functional.attention(*qkv, mask)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)
    grad = torch.randn_like(expected)
    for name, mine, right in zip(
        "qkv",
        torch.autograd.grad(ours, qkv, grad),
        torch.autograd.grad(expected, qkv, grad),
        strict=True,
    ):
        torch.testing.assert_close(mine, right, rtol=0, atol=1e-12, msg=name)


def test_second_derivative_under_the_math_kernel(mask):
    qkv = [x.requires_grad_() for x in heads(dtype=torch.float64)]
    with sdpa_kernel(SDPBackend.MATH):
        torch.autograd.gradgradcheck(
            lambda *qkv: attend_without_padding(*qkv, mask), qkv, fast_mode=True
        )


def test_no_padding_is_computed(mask, monkeypatch):
    lengths, masked = [], []
    fused = F.scaled_dot_product_attention

    def remember(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        lengths.append(k.shape[2])
        masked.append(mask is not None)
        return fused(q, k, v, mask)

    monkeypatch.setattr(F, "scaled_dot_product_attention", remember)
    attend_without_padding(*heads(), mask)
    assert lengths == [4, 5, 7, 9, 1]
    assert masked == [False, False, False, True, True]


def test_it_is_worth_it_for_long_samples_whose_only_mask_is_padding(mask, monkeypatch):
    q, k, _ = heads()
    assert not is_worth_cutting(q, k, mask)
    monkeypatch.setattr(padding, "MANY_WEIGHTS", H * L * S)
    assert is_worth_cutting(q, k, mask)
    for other in (mask[0, 0], mask.expand(N, H, L, S), mask.float(), mask[:1]):
        assert not is_worth_cutting(q, k, other)
    assert not is_worth_cutting(q[:, :, :-1], k, mask)
    assert not is_worth_cutting(*(x.to("meta") for x in (q, k, mask)))
    seen = []
    torch.func.vmap(lambda q: seen.append(is_worth_cutting(q, k, mask)) or q)(q[None])
    assert seen == [False]


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("trains", [True, False])
def test_the_module_answers_alike_and_is_recorded(mask, need_weights, trains, monkeypatch):
    module = MultiheadAttention(6, H).train(trains)
    query, memory = torch.randn(N, L, 6), torch.randn(N, S, 6)
    call = {"key_padding_mask": ~mask[:, 0, 0], "need_weights": need_weights}
    expected, weights = module(query, memory, memory, key_padding_mask=~mask[:, 0, 0])
    monkeypatch.setattr(padding, "MANY_WEIGHTS", 0)
    output, _ = module(query, memory, memory, **call)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-6)
    with record_attention(module) as maps:
        recorded, _ = module(query, memory, memory, **call)
    assert torch.equal(recorded, output)
    [one] = maps
    torch.testing.assert_close(one.weights, weights, rtol=0, atol=1e-6)


def test_dropout_is_left_to_the_kernel(mask, monkeypatch):
    monkeypatch.setattr(padding, "MANY_WEIGHTS", 0)
    module = MultiheadAttention(6, H, dropout=0.5)
    query, memory = torch.randn(N, L, 6), torch.randn(N, S, 6)
    calls = []
    fused = F.scaled_dot_product_attention
    monkeypatch.setattr(
        F, "scaled_dot_product_attention", lambda *args: calls.append(1) or fused(*args)
    )
    module(query, memory, memory, key_padding_mask=~mask[:, 0, 0], need_weights=False)
    assert len(calls) == 1


def test_not_of_an_empty_batch(monkeypatch):
    monkeypatch.setattr(padding, "MANY_WEIGHTS", 0)
    q, k = (torch.ones(0, H, n, D) for n in (L, S))
    assert not is_worth_cutting(q, k, torch.ones(0, 1, 1, S, dtype=torch.bool))
