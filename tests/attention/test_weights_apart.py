"""Weights computed in blocks against the reference, whatever the size of the blocks."""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from mha_lab import MultiheadAttention
from mha_lab.attention.functional import attention_scores, attention_weights
from mha_lab.attention.multihead import blocks
from mha_lab.attention.multihead.weights import weights_apart

N, H, L, S, D = 3, 5, 7, 11, 2
BLOCKS = {
    "less than a head": 13,
    "three heads": 3 * L * S,
    "two samples": 2 * H * L * S,
    "all": 2**20,
    "no blocks": None,
}


@pytest.fixture(params=BLOCKS.values(), ids=BLOCKS.keys(), autouse=True)
def _size_of_a_block(request, monkeypatch):
    if request.param is not None:
        monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", request.param)
        monkeypatch.setattr(blocks, "ONE_BLOCK", 0)


def masks() -> dict[str, tuple[Tensor | None, bool]]:
    drawn = torch.Generator().manual_seed(7)

    def allowed(*shape: int) -> Tensor:
        return torch.rand(shape, generator=drawn) > 0.4

    hides_rows = allowed(N, H, L, S)
    hides_rows[1, 2, 3] = hides_rows[2, :, 0] = False
    bias = torch.randn(H, L, S, generator=drawn)
    return {
        "none": (None, False),
        "causal": (None, True),
        "padding": (torch.arange(S) < torch.tensor([11, 4, 0])[:, None, None, None], False),
        "one for all": (allowed(L, S), False),
        "per head": (hides_rows, False),
        "float": (bias.masked_fill(bias > 1, -torch.inf).double(), False),
        "float per sample": (torch.randn(N, 1, 1, S, generator=drawn), False),
    }


def reference(q: Tensor, k: Tensor, mask: Tensor | None, is_causal: bool, average: bool) -> Tensor:
    whole = attention_weights(attention_scores(q, k, mask, is_causal))
    return whole.mean(1) if average else whole


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("kind", masks())
def test_values_and_gradients(kind, average):
    mask, is_causal = masks()[kind]
    q, k = (torch.randn(N, H, n, D, dtype=torch.float64, requires_grad=True) for n in (L, S))
    ours = weights_apart(q, k, mask, is_causal=is_causal, average=average)
    expected = reference(q, k, mask, is_causal, average)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)
    grad = torch.randn_like(expected)
    for mine, right in zip(
        torch.autograd.grad(ours, (q, k), grad),
        torch.autograd.grad(expected, (q, k), grad),
        strict=True,
    ):
        torch.testing.assert_close(mine, right, rtol=0, atol=1e-12)


@pytest.mark.parametrize("average", [True, False])
def test_second_derivative_with_rows_that_see_nothing(average):
    mask, _ = masks()["per head"]
    q, k = (torch.randn(N, H, n, D, dtype=torch.float64, requires_grad=True) for n in (L, S))
    torch.autograd.gradcheck(
        lambda q: weights_apart(q, k.detach(), mask, is_causal=False, average=average),
        q,
        fast_mode=True,
    )
    torch.autograd.gradgradcheck(
        lambda q, k: weights_apart(q, k, mask, is_causal=False, average=average),
        (q, k),
        fast_mode=True,
    )


class Largest(TorchDispatchMode):
    """Remembers the size of the largest tensor that any operation gave."""

    elements = 0
    bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for each in result if isinstance(result, tuple | list) else (result,):
            if isinstance(each, Tensor):
                stored = each.untyped_storage().nbytes()
                self.bytes = max(self.bytes, stored)
                self.elements = max(self.elements, stored // each.itemsize)
        return result


@pytest.mark.parametrize("trains", [True, False])
@pytest.mark.parametrize("_size_of_a_block", [13, 2**20], indirect=True)
def test_the_whole_tensor_never_exists_where_the_mean_is_asked_for(trains):
    module = MultiheadAttention(10, 5)
    x = torch.randn(3, 37, 10, requires_grad=trains)
    with Largest() as largest:
        output, mean = module(x, x, x, average_attn_weights=True)
        if trains:
            (output.sum() + mean.square().sum()).backward()
    assert mean.shape == (3, 37, 37)
    assert 3 * 37 * 37 <= largest.elements < 3 * 5 * 37 * 37


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("_size_of_a_block", [13, 2**20], indirect=True)
def test_unused_weights_have_no_backward_pass(average, monkeypatch):
    def fail(*_):
        raise RuntimeError("nobody asked for this gradient")

    monkeypatch.setattr(blocks.WeightFactors, "gradients", fail)
    module = MultiheadAttention(10, 5)
    x = torch.randn(3, 7, 10, requires_grad=True)
    output, attn = module(x, x, x, average_attn_weights=average)
    output.sum().backward()
    with pytest.raises(RuntimeError, match="nobody asked"):
        attn.square().sum().backward()


@pytest.mark.parametrize("average", [True, False])
def test_several_gradients_at_once(average):
    mask, _ = masks()["per head"]
    q, k = (torch.randn(N, H, n, D, dtype=torch.float64, requires_grad=True) for n in (L, S))
    ours = weights_apart(q, k, mask, is_causal=False, average=average)
    grads = torch.randn(13, *ours.shape, dtype=ours.dtype)
    batched = torch.autograd.grad(ours, (q, k), grads, is_grads_batched=True, retain_graph=True)
    one_by_one = [torch.autograd.grad(ours, (q, k), grad, retain_graph=True) for grad in grads]
    for mine, right in zip(batched, zip(*one_by_one, strict=True), strict=True):
        torch.testing.assert_close(mine, torch.stack(right), rtol=0, atol=1e-12)


@pytest.mark.parametrize("average", [True, False])
def test_rows_that_see_nothing_give_no_gradient_whatever_they_get(average):
    mask, _ = masks()["padding"]
    q, k = (torch.randn(N, H, n, D, requires_grad=True) for n in (L, S))
    ours = weights_apart(q, k, mask, is_causal=False, average=average)
    grad = torch.zeros_like(ours)
    grad[2] = torch.inf  # the sample whose every key is padding
    for found in torch.autograd.grad(ours, (q, k), grad):
        assert not found.any()


@pytest.mark.parametrize("average", [True, False])
def test_keys_that_come_from_the_queries_are_not_gone_back_to_twice(average):
    q = torch.randn(N, H, L, D, dtype=torch.float64, requires_grad=True)
    for k in (q, 2 * q):
        ours = weights_apart(q, k, None, is_causal=False, average=average)
        expected = reference(q, k, None, False, average)
        grad = torch.randn_like(expected)
        for create_graph in (False, True):
            options = {"retain_graph": True, "create_graph": create_graph}
            [mine] = torch.autograd.grad(ours, q, grad, **options)
            [right] = torch.autograd.grad(expected, q, grad, **options)
            torch.testing.assert_close(mine, right, rtol=0, atol=1e-12)


@pytest.mark.parametrize("average", [True, False])
def test_double_precision_under_autocast(average):
    q, k = (torch.randn(N, H, n, D, dtype=torch.float64) for n in (L, S))
    with torch.autocast("cpu"):
        ours = weights_apart(q, k, None, is_causal=False, average=average)
    torch.testing.assert_close(ours, reference(q, k, None, False, average), rtol=0, atol=1e-12)
