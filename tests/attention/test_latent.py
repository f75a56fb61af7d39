"""Latent attention against transformers' DeepSeek-V3, and its options."""

from typing import Any

import pytest
import torch
from state_cases import TOLERANCES, Turning
from torch import Tensor, nn
from transformers.models.deepseek_v3.configuration_deepseek_v3 import DeepseekV3Config
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention

from mha_lab import record_attention
from mha_lab.attention.cache import Cache
from mha_lab.attention.functional import attention
from mha_lab.attention.latent import LatentAttention

N, L, E, H, D, RANK, ROTARY = 2, 7, 30, 3, 10, 11, 4


class Leaning(nn.Module):
    """A bias that grows with the key's position, and one that reads the content."""

    def __init__(self, *, reads: bool) -> None:
        super().__init__()
        if reads:
            self.score_bias = lambda q, k, x, i, j: (
                self.bias(i, j) * q.mean((2, 3))[..., None, None]
            )

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        return (q_positions[:, None] * 0.1 + k_positions * 0.2)[None]


def deepseek(q_rank: int | None, dtype: torch.dtype) -> DeepseekV3Attention:
    config = DeepseekV3Config(
        hidden_size=E, num_attention_heads=H, num_key_value_heads=H, kv_lora_rank=RANK,
        q_lora_rank=q_rank, qk_nope_head_dim=D, qk_rope_head_dim=ROTARY, v_head_dim=D,
        attn_implementation="eager" if dtype == torch.float32 else "sdpa", attention_dropout=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    module = DeepseekV3Attention(config, layer_idx=0).to(dtype)
    if dtype == torch.float64:  # their norm, and the softmax of "eager", round to float32
        for name in ("q_a_layernorm", "kv_a_layernorm"):
            if (norm := getattr(module, name)) is not None:
                exact = nn.RMSNorm(len(norm.weight), eps=1e-6, dtype=dtype)
                setattr(module, name, exact)
    return module


def with_their_weights(theirs: DeepseekV3Attention, q_rank: int | None) -> LatentAttention:
    ours = LatentAttention(
        E, H, kv_rank=RANK, q_rank=q_rank, rotary_dim=ROTARY, position=Turning()
    ).to(theirs.o_proj.weight.dtype)
    names = {
        "q_a_proj": "q_down", "q_a_layernorm": "q_norm", "q_b_proj": "q_up", "q_proj": "q_up",
        "kv_a_proj_with_mqa": "kv_down", "kv_a_layernorm": "kv_norm", "kv_b_proj": "kv_up",
        "o_proj": "out_proj",
    }  # fmt: skip
    state = {
        f"{names[key.partition('.')[0]]}.weight": value
        for key, value in theirs.state_dict().items()
    }
    ours.load_state_dict({**state, "out_proj.bias": torch.zeros(E)})
    return ours


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("q_rank", [None, 13])
def test_deepseek_v3(q_rank: int | None, dtype: torch.dtype) -> None:
    """Output, weights and the gradients of input and parameters, under a causal mask."""
    theirs = deepseek(q_rank, dtype)
    ours = with_their_weights(theirs, q_rank)
    x = torch.randn(N, L, E, dtype=dtype, requires_grad=True)
    pair = torch.arange(0, ROTARY, 2, dtype=torch.float64)
    angles = torch.arange(L)[None, :, None] * 10000.0 ** (-pair / ROTARY)
    turning = torch.cat([angles, angles], -1).to(dtype)  # theirs would be in float32
    blocked = torch.ones(L, L, dtype=torch.bool).triu(1)
    added = torch.zeros(1, 1, L, L, dtype=dtype).masked_fill(blocked, torch.finfo(dtype).min)
    expected, expected_weights = theirs(x, (turning.cos(), turning.sin()), added)
    output, weights = ours(x, x, x, is_causal=True)
    close: dict[str, Any] = {"rtol": TOLERANCES[dtype], "atol": TOLERANCES[dtype]}
    torch.testing.assert_close(output, expected, **close)
    if dtype == torch.float32:
        torch.testing.assert_close(weights, expected_weights, **close)
    wanted = torch.randn_like(output)
    mine = torch.autograd.grad(output, [x, *ours.parameters()], wanted)
    by_name = dict(zip(["x", *dict(ours.named_parameters())], mine, strict=True))
    other = torch.autograd.grad(expected, [x, theirs.o_proj.weight, theirs.kv_b_proj.weight,
                                           theirs.kv_a_proj_with_mqa.weight], wanted)  # fmt: skip
    for name, grad in zip(
        ["x", "out_proj.weight", "kv_up.weight", "kv_down.weight"], other, strict=True
    ):
        torch.testing.assert_close(by_name[name], grad, **close)


def written_out(module: LatentAttention, x: Tensor) -> Tensor:
    """Without positions: the paper's equations 9 to 11, through the reference attention."""
    c = x @ module.kv_down.weight.T
    c = c / (c.square().mean(-1, keepdim=True) + 1e-6).sqrt() * module.kv_norm.weight
    both = (c @ module.kv_up.weight.T).view(N, L, H, 2 * D).transpose(1, 2)
    q = (x @ module.q_up.weight.T).view(N, L, H, D).transpose(1, 2)
    heads, _ = attention(q, both[..., :D], both[..., D:], is_causal=True)
    return module.out_proj(heads.transpose(1, 2).reshape(N, L, E))  # type: ignore[no-any-return]


def test_without_positions_in_float64() -> None:
    module = LatentAttention(E, H, kv_rank=RANK).double()
    x = torch.randn(N, L, E, dtype=torch.float64, requires_grad=True)
    output, expected = module(x, x, x, is_causal=True)[0], written_out(module, x)
    torch.testing.assert_close(output, expected, rtol=1e-10, atol=1e-10)
    wanted = torch.randn_like(output)
    inputs = [x, *module.parameters()]
    for mine, other in zip(
        torch.autograd.grad(output, inputs, wanted),
        torch.autograd.grad(expected, inputs, wanted),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("position", [None, Turning(), Leaning(reads=False), Leaning(reads=True)])
def test_what_is_shown_is_what_was_applied(position: nn.Module | None) -> None:
    """By the recorder and to who asks, padding and all; the same with weights and without."""
    module, x = LatentAttention(E, H, position=position).eval(), torch.randn(N, L, E)
    padding = torch.zeros(N, L, dtype=torch.bool)
    padding[1, 4:] = True
    with record_attention(module) as maps:
        output, _ = module(x, x, x, key_padding_mask=padding, need_weights=False, is_causal=True)
    expected, weights = module(x, x, x, key_padding_mask=padding, is_causal=True)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(maps[0].weights, weights.detach())
    assert not weights[1, :, :, 4:].any()
    assert not weights.triu(1).any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(N, H, L))
    v = module._widen(module._narrow(x)[0])[1]
    made = module.out_proj((weights @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(output, made)


def test_a_bias_is_added_to_the_scores() -> None:
    """Beside a causal mask, beside padding, and alone: e to the bias, times what it was."""
    x, padding = torch.randn(N, L, E), torch.zeros(N, L, dtype=torch.bool)
    padding[1, 4:] = True
    torch.manual_seed(0)
    plain = LatentAttention(E, H)
    torch.manual_seed(0)
    leaning = LatentAttention(E, H, position=Leaning(reads=False))
    factor = leaning.position.bias(torch.arange(L), torch.arange(L)).exp()
    for masks in ({}, {"is_causal": True}, {"key_padding_mask": padding},
                  {"attn_mask": torch.randn(L, L)}):  # fmt: skip
        expected = plain(x, x, x, **masks)[1] * factor
        weights = leaning(x, x, x, **masks)[1]
        torch.testing.assert_close(weights, expected / expected.sum(-1, keepdim=True))


def test_values_of_their_own() -> None:
    """A value that is another tensor goes through the narrow layer by itself."""
    module, x, y = LatentAttention(E, H), torch.randn(N, L, E), torch.randn(N, L, E)
    weights = module(x, x, x)[1]
    v = module._widen(module._narrow(y)[0])[1]
    expected = module.out_proj((weights @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(module(x, x, y)[0], expected)
    unbatched = module(x[0], x[0], y[0])
    torch.testing.assert_close(unbatched[0], expected[0])
    assert unbatched[1].shape == (H, L, L)


def test_what_it_cannot_be_built_from() -> None:
    with pytest.raises(ValueError, match="kv_rank must be at least 1, got kv_rank=0"):
        LatentAttention(E, H, kv_rank=0)
    with pytest.raises(TypeError, match=r"q_rank must be a whole number, got 1\.5"):
        LatentAttention(E, H, q_rank=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rotary_dim must be even, got rotary_dim=3"):
        LatentAttention(E, H, rotary_dim=3)


def test_a_cache_takes_no_values_of_their_own() -> None:
    """It holds what keys and values are both made of."""
    module, x, cache = LatentAttention(E, H).eval(), torch.randn(N, L, E), Cache()
    module(x, x, x, is_causal=True, cache=cache)
    new = x[:, :1]
    for value in (torch.randn(N, 1, E), x[:, :1]):
        with pytest.raises(ValueError, match="value must be the same tensor as key"):
            module(new, new, value, need_weights=False, cache=cache)
