"""Ours against attention that others wrote: BERT's of transformers, and x-transformers'."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from mha_lab import MultiheadAttention

N, L, S, H, D = 3, 5, 7, 2, 11
E = H * D
CLOSE = {torch.float64: {"rtol": 1e-10, "atol": 1e-10}, torch.float32: {"rtol": 1e-5, "atol": 1e-5}}
DTYPES = pytest.mark.parametrize("dtype", CLOSE)


def blocked_keys():
    return torch.arange(S) >= torch.tensor([[S], [3], [1]])


def check(ours, theirs, inputs, dtype, weights):
    """Outputs, the gradients of the inputs, and those of the weights agree.

    ``ours`` and ``theirs`` map the inputs to an output; ``weights`` pairs parameters of ours
    with the parameters of theirs that lie below each other in it.
    """
    outputs = [run(*inputs) for run in (ours, theirs)]
    assert_close(*outputs, **CLOSE[dtype])
    slope = torch.linspace(-1, 1, outputs[0].numel(), dtype=dtype).view_as(outputs[0])
    mine = [*inputs, *(our for our, _ in weights)]
    others = [*inputs, *(each for _, parts in weights for each in parts)]
    got = torch.autograd.grad((outputs[0] * slope).sum(), mine)
    wanted = list(torch.autograd.grad((outputs[1] * slope).sum(), others))
    n = len(inputs)
    for g, (_, parts) in zip(got[n:], weights, strict=True):
        assert_close(g, torch.cat([wanted.pop(n) for _ in parts]), **CLOSE[dtype])
    for g, w in zip(got[:n], wanted, strict=True):
        assert_close(g, w, **CLOSE[dtype])


@DTYPES
@pytest.mark.parametrize("is_masked", [False, True])
def test_bert_of_transformers(dtype, is_masked):
    """Its eager attention, with the output's linear map and without its residual and norm."""
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertSelfAttention

    config = BertConfig(hidden_size=E, num_attention_heads=H, attention_probs_dropout_prob=0.0)
    config._attn_implementation = "eager"
    theirs = BertSelfAttention(config).to(dtype)
    out_proj = torch.nn.Linear(E, E, dtype=dtype)
    ours = MultiheadAttention(E, H, dtype=dtype)
    projections = theirs.query, theirs.key, theirs.value
    with torch.no_grad():
        for p in [*theirs.parameters()]:
            torch.nn.init.normal_(p, std=0.3)
        ours.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        ours.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
    ours.out_proj.load_state_dict(out_proj.state_dict())
    x = torch.randn(N, S, E, dtype=dtype, requires_grad=True)
    blocked = blocked_keys() if is_masked else torch.zeros(N, S, dtype=torch.bool)
    added = torch.zeros(N, 1, 1, S, dtype=dtype).masked_fill(
        blocked[:, None, None], torch.finfo(dtype).min
    )
    context, theirs_weights = theirs(x, added)[:2]
    _, weights = ours(x, x, x, key_padding_mask=blocked)
    assert context.shape == (N, S, E)
    assert_close(weights, theirs_weights, **CLOSE[dtype])
    check(
        lambda x: ours(x, x, x, key_padding_mask=blocked)[0],
        lambda x: out_proj(theirs(x, added)[0]),
        [x],
        dtype,
        [
            (ours.in_proj_weight, [p.weight for p in projections]),
            (ours.in_proj_bias, [p.bias for p in projections]),
            (ours.out_proj.weight, [out_proj.weight]),
        ],
    )


@DTYPES
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("is_masked", [False, True])
def test_x_transformers(dtype, is_causal, is_masked):
    """Self-attention when causal, cross-attention otherwise."""
    from x_transformers.x_transformers import Attention

    theirs = Attention(dim=E, heads=H, dim_head=D, causal=is_causal).to(dtype)
    theirs.attend.attn_fn = partial(torch.softmax, dim=-1, dtype=dtype)  # its own is always float32
    ours = MultiheadAttention(E, H, bias=False, dtype=dtype)
    projections = [theirs.to_q.weight, theirs.to_k.weight, theirs.to_v.weight]
    with torch.no_grad():
        for p in theirs.parameters():
            torch.nn.init.normal_(p, std=0.3)
        ours.in_proj_weight.copy_(torch.cat(projections))
        ours.out_proj.weight.copy_(theirs.to_out.weight)
    keep = ~blocked_keys() if is_masked else None
    blocked = blocked_keys() if is_masked else None
    memory = torch.randn(N, S, E, dtype=dtype, requires_grad=True)
    query = torch.randn(N, L, E, dtype=dtype, requires_grad=True)

    def run_ours(*inputs):
        query, memory = inputs[0], inputs[-1]
        masks = {"key_padding_mask": blocked, "is_causal": is_causal}
        output = ours(query, memory, memory, need_weights=False, **masks)[0]
        if is_causal and is_masked:  # theirs gives 0 for queries that are padding
            output = output.masked_fill(blocked[..., None], 0.0)
        return output

    def run_theirs(*inputs):
        if is_causal:
            return theirs(inputs[0], mask=keep)
        return theirs(inputs[0], context=inputs[1], context_mask=keep)

    inputs = [memory] if is_causal else [query, memory]
    weights = [(ours.in_proj_weight, projections), (ours.out_proj.weight, [theirs.to_out.weight])]
    check(run_ours, run_theirs, inputs, dtype, weights)
