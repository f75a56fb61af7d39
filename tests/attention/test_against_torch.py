"""Ours against torch's module over all constructor and call arguments that torch gets right.

Left out, because torch's own answer is wrong or an error there (see ``test_reported_faults``): rows
whose every key is blocked (NaN), ``is_causal`` without a mask or beside a padding mask, weights in
training with dropout (torch returns them after dropout), bool masks beside float ones (torch warns,
and is slated to refuse), and masks of four axes. ``by_hand`` judges those.
"""

import math
from dataclasses import dataclass

import pytest
import torch
from by_hand import attend
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from mha_lab import MultiheadAttention

TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-5}
SWEEP = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


@dataclass
class Call:
    """One module and one call of it, drawn by hypothesis."""

    options: dict
    sizes: tuple[int, int, int]
    inputs: str
    is_batched: bool
    training: bool
    need_weights: bool
    average: bool
    attn_mask: str | None
    key_padding_mask: bool
    mask_kind: str
    is_causal: bool
    dtype: torch.dtype
    seed: int


@st.composite
def drawn_calls(draw):
    H = draw(st.sampled_from([1, 2, 3, 5]))
    E = H * draw(st.sampled_from([1, 2, 3, 4]))
    inputs = draw(st.sampled_from(["self", "memory", "apart"]))
    widths = st.sampled_from([None, 7, 11]) if inputs == "apart" else st.none()
    options = {
        "embed_dim": E,
        "num_heads": H,
        "dropout": draw(st.sampled_from([0.0, 0.25])),
        "bias": draw(st.booleans()),
        "add_bias_kv": draw(st.booleans()),
        "add_zero_attn": draw(st.booleans()),
        "kdim": draw(widths),
        "vdim": draw(widths),
        "batch_first": draw(st.booleans()),
    }
    is_batched = draw(st.booleans())
    attn_mask = draw(st.sampled_from([None, "(L, S)", "(N·H, L, S)"]))
    key_padding_mask = draw(st.booleans())
    need_weights = draw(st.booleans())
    causal_is_right = attn_mask == "(L, S)" and not key_padding_mask
    # torch adds a column for each added key to the mask, then drops the mask for is_causal.
    causal_is_right = causal_is_right and not (options["add_bias_kv"] or options["add_zero_attn"])
    return Call(
        options,
        (draw(st.sampled_from([1, 2, 3])) if is_batched else 1, *draw(lengths(inputs))),
        inputs,
        is_batched,
        draw(st.booleans()) and options["dropout"] == 0.0,
        need_weights,
        draw(st.booleans()),
        attn_mask,
        key_padding_mask,
        draw(st.sampled_from(["bool", "float"])),
        draw(st.booleans()) and causal_is_right,
        draw(st.sampled_from(list(TOLERANCES))),
        draw(st.integers(0, 2**31)),
    )


def lengths(inputs):
    length = st.integers(1, 7)
    return length.map(lambda n: (n, n)) if inputs == "self" else st.tuples(length, length)


def modules_of(call):
    torch.manual_seed(call.seed)
    stock = nn.MultiheadAttention(**call.options, dtype=call.dtype)
    for parameter in stock.parameters():
        nn.init.normal_(parameter, std=0.5)
    ours = MultiheadAttention(**call.options, dtype=call.dtype)
    ours.load_state_dict(stock.state_dict())
    return stock.train(call.training), ours.train(call.training)


def inputs_of(call):
    """Query, key and value in the layout of the call, sharing tensors as it says."""
    N, L, S = call.sizes
    E = call.options["embed_dim"]
    widths = E, call.options["kdim"] or E, call.options["vdim"] or E

    def tensor(length, width):
        shape = (N, length) if call.options["batch_first"] else (length, N)
        x = torch.randn(*(shape if call.is_batched else (length,)), width, dtype=call.dtype)
        return x.requires_grad_()

    query = tensor(L, widths[0])
    if call.inputs == "self":
        return query, query, query
    key = tensor(S, widths[1])
    return query, key, key if call.inputs == "memory" else tensor(S, widths[2])


def masks_of(call):
    """Masks of one kind that leave every row its first key, and the bias that they mean."""
    (N, L, S), H = call.sizes, call.options["num_heads"]
    of_padding = (N, S) if call.is_batched else (S,)
    shapes = {
        "attn_mask": {"(L, S)": (L, S), "(N·H, L, S)": (N * H, L, S)}.get(call.attn_mask),
        "key_padding_mask": of_padding if call.key_padding_mask else None,
    }
    masks = {}
    for name, shape in shapes.items():
        if shape is not None:
            blocked = torch.rand(shape) < 0.4
            blocked[..., 0] = False
            if name == "attn_mask" and call.is_causal:
                blocked = torch.ones(L, S, dtype=torch.bool).triu(1)
            masks[name] = blocked
            if call.mask_kind == "float":
                added = torch.zeros if call.is_causal else torch.randn
                masks[name] = added(shape, dtype=call.dtype).masked_fill(blocked, -math.inf)
    return masks


def results(module, call, inputs, masks):
    """Output, weights, and the gradients of both through inputs and parameters."""
    output, weights = module(
        *inputs,
        **masks,
        need_weights=call.need_weights,
        average_attn_weights=call.average,
        is_causal=call.is_causal,
    )
    assert (weights is None) != call.need_weights
    loss = (output * torch.linspace(-1, 1, output.numel(), dtype=call.dtype).view_as(output)).sum()
    if weights is not None:
        slope = torch.linspace(-1, 2, weights.numel(), dtype=call.dtype).view_as(weights)
        loss = loss + (weights * slope).sum()
    wanted = [*dict.fromkeys(inputs), *module.parameters()]
    gradients = torch.autograd.grad(loss, wanted, allow_unused=True)
    return output, weights, gradients


@SWEEP
@given(drawn_calls())
def test_outputs_weights_and_gradients_are_torchs(call):
    stock, ours = modules_of(call)
    inputs, masks = inputs_of(call), masks_of(call)
    close = {"rtol": TOLERANCES[call.dtype], "atol": TOLERANCES[call.dtype]}
    output, weights, gradients = results(ours, call, inputs, masks)
    expected, expected_weights, expected_gradients = results(stock, call, inputs, masks)
    assert_close(output, expected, **close)
    if call.need_weights:
        assert_close(weights, expected_weights, **close)
    names = ["input"] * len(dict.fromkeys(inputs)) + [n for n, _ in ours.named_parameters()]
    for name, got, wanted in zip(names, gradients, expected_gradients, strict=True):
        if wanted is not None:
            scale = max(1.0, wanted.abs().max().item())  # float32 rounds relative to the sums
            assert_close(got / scale, wanted / scale, **close, msg=lambda m, n=name: f"{n}: {m}")


@SWEEP
@given(drawn_calls())
def test_no_grad_and_eval_change_nothing(call):
    """torch's fused path, where it applies, against ours, without gradients."""
    stock, ours = (module.eval() for module in modules_of(call))
    inputs, masks = inputs_of(call), masks_of(call)
    close = {"rtol": TOLERANCES[call.dtype], "atol": TOLERANCES[call.dtype]}
    with torch.no_grad():
        got = ours(*inputs, **masks, need_weights=True, average_attn_weights=call.average)
        bare, _ = ours(*inputs, **masks, need_weights=False)
        expected = stock(*inputs, **masks, need_weights=True, average_attn_weights=call.average)
    assert_close(got[0], expected[0], **close)
    assert_close(got[1], expected[1], **close)
    assert_close(bare, expected[0], **close)


@SWEEP
@given(drawn_calls(), st.booleans())
def test_what_torch_gets_wrong_is_right_by_hand(call, with_causal):
    """Rows blocked whole, mixed kinds of masks, causality by itself: against ``by_hand``."""
    _, ours = modules_of(call)
    N, L, S = call.sizes
    H, E = ours.num_heads, ours.embed_dim
    ours.batch_first, call.options["batch_first"], call.dtype = True, True, torch.float64
    ours.double().eval()
    x = torch.randn(N, L, E, dtype=torch.float64)
    key, value = (torch.randn(N, S, w, dtype=torch.float64) for w in (ours.kdim, ours.vdim))
    blocked = torch.rand(N, H, L, S) < 0.7
    padding = torch.randn(N, S, dtype=torch.float64).masked_fill(torch.rand(N, S) < 0.5, -math.inf)
    bias = padding[:, None, None].masked_fill(blocked, -math.inf)
    if with_causal:
        bias = bias.masked_fill(torch.ones(L, S, dtype=torch.bool).triu(1), -math.inf)
    got = ours(x, key, value, key_padding_mask=padding, attn_mask=blocked, is_causal=with_causal)
    for ours_, by_hand in zip(got, attend(ours, x, key, value, bias), strict=True):
        assert_close(ours_, by_hand, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("sizes", [(0, 3, 5), (2, 0, 5), (2, 3, 0), (2, 0, 0)], ids=str)
@pytest.mark.parametrize("need_weights", [True, False])
def test_empty_batches_and_sequences(batch_first, sizes, need_weights):
    N, L, S = sizes
    module = MultiheadAttention(6, 3, batch_first=batch_first)
    nn.init.normal_(module.out_proj.bias)
    query, key = (torch.randn(N, n, 6, requires_grad=True) for n in (L, S))
    given_ = (x if batch_first else x.transpose(0, 1) for x in (query, key, key))
    output, weights = module(*given_, need_weights=need_weights)
    output = output if batch_first else output.transpose(0, 1)
    assert output.shape == (N, L, 6)
    if need_weights:
        assert weights.shape == (N, 3, L, S)
    if S == 0:
        assert_close(output, module.out_proj.bias.expand(N, L, 6))
    output.sum().backward()
    assert all(p.grad.isfinite().all() for p in module.parameters() if p.grad is not None)
