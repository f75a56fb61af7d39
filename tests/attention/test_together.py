"""Output and weights from the same blocks against the reference, and against the fused kernel."""

import copy

import pytest
import torch
import torch.nn.functional as F
from test_weights_apart import BLOCKS, D, H, L, Largest, N, S, masks
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel

from mha_lab import MultiheadAttention, record_attention
from mha_lab.attention import functional
from mha_lab.attention.multihead import blocks
from mha_lab.attention.multihead.together import attend_with_weights, is_faster_together


@pytest.fixture(params=BLOCKS.values(), ids=BLOCKS.keys(), autouse=True)
def _size_of_a_block(request, monkeypatch):
    if request.param is not None:
        monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", request.param)
        monkeypatch.setattr(blocks, "ONE_BLOCK", 0)


def heads(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    drawn = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(N, H, n, D, generator=drawn, dtype=dtype) for n in (L, S, S))
    return q, k, v


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("kind", masks())
def test_values(kind, average):
    mask, is_causal = masks()[kind]
    q, k, v = heads()
    output, weights = attend_with_weights(q, k, v, mask, is_causal, average)
    expected, whole = functional.attention(q, k, v, mask, is_causal=is_causal)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(weights, whole.mean(1) if average else whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_comes_from_single_precision(dtype):
    q, k, v = (100 * x for x in heads(dtype))  # scores beyond what float16 holds
    output, weights = attend_with_weights(q, k, v)
    expected, whole = functional.attention(q.float(), k.float(), v.float())
    assert output.dtype == weights.dtype == dtype
    torch.testing.assert_close(output, expected.to(dtype))
    torch.testing.assert_close(weights, whole.to(dtype))


@pytest.mark.parametrize("sizes", [(0, L, S), (N, 0, S), (N, L, 0)])
@pytest.mark.parametrize("average", [True, False])
def test_empty(sizes, average):
    n, length, source = sizes
    q, k, v = (torch.ones(n, H, x, D) for x in (length, source, source))
    output, weights = attend_with_weights(q, k, v, None, False, average)
    assert output.shape == (n, H, length, D)
    assert not output.any()
    assert weights.shape == ((n, length, source) if average else (n, H, length, source))


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("is_causal", [True, False])
def test_the_module_answers_alike_with_and_without_gradient(average, is_causal):
    module = MultiheadAttention(10, 5).eval()
    x = torch.randn(3, 7, 10)
    padding = None if is_causal else torch.arange(7) >= torch.tensor([7, 4, 0])[:, None]
    call = {"average_attn_weights": average, "is_causal": is_causal, "key_padding_mask": padding}
    apart = module(x, x, x, **call)
    with torch.no_grad():
        together = module(x, x, x, **call)
        alone, _ = module(x, x, x, need_weights=False, **call)
    torch.testing.assert_close(together, apart, rtol=0, atol=1e-6)
    torch.testing.assert_close(together[0], alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("_size_of_a_block", [13, 2**20], indirect=True)
def test_averaged_weights_never_exist_for_all_heads(monkeypatch):
    module = MultiheadAttention(10, 5).eval()
    x = torch.randn(3, 37, 10)
    with torch.no_grad(), Largest() as largest:
        _, mean = module(x, x, x, average_attn_weights=True)
    assert mean.shape == (3, 37, 37)
    assert 3 * 37 * 37 <= largest.elements < 3 * 5 * 37 * 37


@pytest.mark.parametrize("average", [True, False])
def test_a_recorder_sees_it(average):
    module = MultiheadAttention(10, 5, average_attn_weights=average).eval()
    x = torch.randn(3, 7, 10)
    with torch.no_grad(), record_attention(module) as maps:
        _, weights = module(x, x, x, is_causal=True)
    [one] = maps
    assert one.kind == "masked"
    assert one.weights.shape == (3, 5, 7, 7)
    seen = one.weights.mean(1) if average else one.weights
    torch.testing.assert_close(seen, weights, rtol=0, atol=1e-6)


def test_where_the_fused_kernel_is_called_instead(monkeypatch):
    calls = []
    fused = F.scaled_dot_product_attention
    monkeypatch.setattr(
        F, "scaled_dot_product_attention", lambda *args: calls.append(1) or fused(*args)
    )
    module = MultiheadAttention(10, 5, dropout=0.5)
    x = torch.randn(3, 7, 10)
    are_few = blocks.ONE_BLOCK > 0

    def fused_calls(**call: bool) -> int:
        calls.clear()
        module(x, x, x, **call)
        return len(calls)

    assert fused_calls() == 1  # drops weights
    module.eval()
    assert fused_calls() == (0 if are_few else 1)
    assert fused_calls(need_weights=False) == 1
    with torch.no_grad():
        assert fused_calls() == 0
        assert fused_calls(need_weights=False) == 1
        with torch.autocast("cpu"):
            assert fused_calls() == 1
        calls.clear()
        copy.deepcopy(module).to("meta")(*[x.to("meta")] * 3)
        assert len(calls) == 1


def test_what_transforms_look_into_is_left_to_the_fused_kernel():
    q, k, v = heads()
    assert is_faster_together(q, k, v, None)
    assert is_faster_together(q, k, v.requires_grad_(), None) == (blocks.ONE_BLOCK > 0)
    with torch.no_grad():
        assert is_faster_together(q, k, v, None)
    seen = []
    torch.func.vmap(lambda q: seen.append(is_faster_together(q, k, v, None)) or q)(q)
    assert seen == [False]


def both(kind: str, average: bool, dtype: torch.dtype = torch.float64) -> tuple[tuple, ...]:
    """Inputs, our output and weights, and the reference's; all with gradient."""
    mask, is_causal = masks()[kind]
    qkv = tuple(x.requires_grad_() for x in heads(dtype))
    output, whole = functional.attention(*qkv, mask, is_causal=is_causal)
    ours = attend_with_weights(*qkv, mask, is_causal, average)
    return qkv, ours, (output, whole.mean(1) if average else whole)


@pytest.mark.parametrize("used", [(0, 1), (0,), (1,)], ids=["both", "output", "weights"])
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("kind", masks())
def test_gradients(kind, average, used):
    qkv, ours, expected = both(kind, average)
    grads = [torch.randn_like(expected[i]) for i in used]
    for mine, right in zip(ours, expected, strict=True):
        torch.testing.assert_close(mine, right, rtol=0, atol=1e-12)
    found, right = (
        torch.autograd.grad([pair[i] for i in used], qkv, grads, materialize_grads=True)
        for pair in (ours, expected)
    )
    for name, mine, theirs in zip("qkv", found, right, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12, msg=name)


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2)])
def test_gradients_of_some_inputs(wanted):
    qkv = heads()
    for i in wanted:
        qkv[i].requires_grad_()
    inputs = [qkv[i] for i in wanted]
    found, right = (
        torch.autograd.grad(sum(y.square().sum() for y in outputs), inputs)
        for outputs in (attend_with_weights(*qkv), functional.attention(*qkv))
    )
    torch.testing.assert_close(found, right, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_in_half_precision_come_from_single_precision(dtype):
    qkv = [x.requires_grad_() for x in heads(dtype)]
    exact = [x.detach().float().requires_grad_() for x in qkv]
    for inputs, attend in ((qkv, attend_with_weights), (exact, functional.attention)):
        output, weights = attend(*inputs)
        (output.float().sum() + weights.float().square().sum()).backward()
    for half, single in zip(qkv, exact, strict=True):
        torch.testing.assert_close(half.grad, single.grad.to(dtype), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("kind", ["none", "padding", "float"])
def test_second_derivative(kind, average):
    mask, is_causal = masks()[kind]
    qkv = [x.requires_grad_() for x in heads()]
    torch.autograd.gradgradcheck(
        lambda *qkv: attend_with_weights(*qkv, mask, is_causal, average), qkv, fast_mode=True
    )
    torch.autograd.gradgradcheck(
        lambda *qkv: attend_with_weights(*qkv, mask, is_causal, average)[0], qkv, fast_mode=True
    )


@pytest.mark.parametrize("average", [True, False])
def test_several_gradients_at_once(average):
    qkv, ours, _ = both("per head", average)
    for used in (ours, ours[:1], ours[1:]):
        grads = [torch.randn(13, *y.shape, dtype=y.dtype) for y in used]
        options = {"retain_graph": True, "materialize_grads": True}
        batched = torch.autograd.grad(used, qkv, grads, is_grads_batched=True, **options)
        one_by_one = [
            torch.autograd.grad(used, qkv, each, **options) for each in zip(*grads, strict=True)
        ]
        for mine, right in zip(batched, zip(*one_by_one, strict=True), strict=True):
            expected = torch.stack(right)  # v's is not batched where only the weights are used
            torch.testing.assert_close(mine.expand_as(expected), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("average", [True, False])
def test_rows_that_see_nothing_give_no_gradient_whatever_they_get(average):
    qkv, (output, weights), _ = both("padding", average)
    grads = torch.zeros_like(output), torch.zeros_like(weights)
    for grad in grads:
        grad[2] = torch.inf  # the sample whose every key is padding
    found = torch.autograd.grad((output, weights), qkv[:2], grads)
    assert not any(grad.any() for grad in found)


@pytest.mark.parametrize("average", [True, False])
def test_returned_weights_are_tensors_of_their_own(average):
    module = MultiheadAttention(10, 5, average_attn_weights=average)
    x = torch.randn(3, 7, 10)
    output, weights = module(x, x, x)
    weights.zero_()  # as is in anyone's power; the output's backward pass does not need them
    output.sum().backward()
    factor = torch.ones((), requires_grad=True)
    with torch.no_grad():
        alone = module(x, x, x)[1]
    alone *= factor
    alone.sum().backward()
    torch.testing.assert_close(factor.grad.item(), 3 * 7.0 * (1 if average else 5))


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("batch", [3, 7])
def test_a_recorder_sees_a_mask_per_head(average, need_weights, batch):
    module = MultiheadAttention(10, 5).eval()
    x, mask = torch.randn(batch, 7, 10), torch.rand(5, 7, 7) > 0.6
    with record_attention(module) as maps:
        module(x, x, x, attn_mask=mask, need_weights=need_weights)
    _, expected = module(x, x, x, attn_mask=mask.expand(batch, 5, 7, 7))
    torch.testing.assert_close(maps[0].weights, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("average", [True, False])
def test_a_recorder_answers_alike_in_both_modes(average):
    class Twice(torch.nn.Module):
        """Multiplies the weights that it gets with values of its own."""

        def __init__(self) -> None:
            super().__init__()
            self.attention = MultiheadAttention(10, 5, average_attn_weights=average)

        def forward(self, x: Tensor) -> Tensor:
            _, weights = self.attention(x, x, x, is_causal=True)
            return weights @ (x if average else x.unsqueeze(1))

    model, x = Twice().eval(), torch.randn(3, 7, 10)
    options = [{}, {"softmax": True}, {"max_size": 1}, {"samples": 1, "heads": [2], "max_size": 4}]
    for option in options:
        with record_attention(model, **option) as apart:
            model(x)
        with torch.no_grad(), record_attention(model, **option) as together:
            model(x)
        assert [(one.name, one.kind) for one in together] == [(m.name, m.kind) for m in apart]
        assert [(one.name, one.kind) for one in apart] == [("attention", "masked")]
        for mine, right in zip(together, apart, strict=True):
            torch.testing.assert_close(mine.weights, right.weights, rtol=0, atol=1e-6)


@pytest.mark.parametrize("_size_of_a_block", [13, 2**20], indirect=True)
def test_a_bool_mask_per_head_never_becomes_floats_for_all_heads():
    module = MultiheadAttention(10, 5, average_attn_weights=True).eval()
    x, mask = torch.randn(3, 37, 10), torch.rand(15, 37, 37) > 0.5
    with torch.no_grad(), Largest() as largest:
        module(x, x, x, attn_mask=mask)
    assert largest.bytes <= 4 * 3 * 37 * 37 * 5 // 3


@pytest.mark.parametrize("_size_of_a_block", [13, 2**20], indirect=True)
def test_a_pooled_recording_holds_no_map_of_all_samples_and_heads():
    module = MultiheadAttention(10, 5, average_attn_weights=True).eval()
    x = torch.randn(7, 53, 10)
    with torch.no_grad(), Largest() as largest, record_attention(module, samples=1, max_size=11):
        module(x, x, x)
    assert largest.elements < 7 * 5 * 53 * 53


@pytest.mark.parametrize("average", [True, False])
def test_a_gradient_of_values_alone(average):
    module = MultiheadAttention(10, 5, vdim=3).requires_grad_(False)
    module.v_proj_weight.requires_grad_()
    x, value = torch.randn(3, 7, 10), torch.randn(3, 7, 3)
    output, weights = module(x, x, value, average_attn_weights=average)
    assert not weights.requires_grad
    loss = output.square().sum() + weights.square().sum()
    if blocks.ONE_BLOCK:  # the fused kernel, which many weights take, has no second derivative
        loss.backward(create_graph=True)
        assert module.v_proj_weight.grad.requires_grad


def test_a_tangent_of_values_alone():
    module = MultiheadAttention(10, 5)
    x, value, tangent = (torch.randn(3, 7, 10) for _ in range(3))
    with forward_ad.dual_level(), sdpa_kernel(SDPBackend.MATH):
        output, weights = module(x, x, forward_ad.make_dual(value, tangent))
        found = forward_ad.unpack_dual(output).tangent
        assert forward_ad.unpack_dual(weights).tangent is None
    zero = torch.zeros_like(value)
    expected = module(x, x, tangent)[0] - module(x, x, zero)[0]  # linear in the values
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_a_dual_mask_is_left_to_what_has_forward_derivatives():
    module = MultiheadAttention(10, 5).eval()
    x = torch.randn(3, 7, 10)
    mask, tangent = torch.randn(7, 7), torch.randn(7, 7)
    step = 1e-3
    with torch.no_grad():
        up, down = (module(x, x, x, attn_mask=mask + s * tangent)[1] for s in (step, -step))
    with (
        forward_ad.dual_level(),
        sdpa_kernel(SDPBackend.MATH),
    ):
        weights = module(x, x, x, attn_mask=forward_ad.make_dual(mask, tangent))[1]
        found = forward_ad.unpack_dual(weights).tangent
    torch.testing.assert_close(found, (up - down) / (2 * step), rtol=0, atol=1e-3)
