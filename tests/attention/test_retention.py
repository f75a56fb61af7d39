"""Retention against the paper's recurrence and against flash-linear-attention's own."""

from collections.abc import Iterator

import pytest
import torch
from state_cases import TOLERANCES, Turning, agree, fla, heads, keys_of
from torch import Tensor

from mha_lab.attention.cache import Cache
from mha_lab.attention.retention import Retention
from mha_lab.attention.states.retention import (
    CHUNK,
    attend_retention,
    decays,
    retention_weights,
)


def from_the_paper(q: Tensor, k: Tensor, v: Tensor, keys: Tensor | None = None) -> Tensor:
    """Equation 6, a position at a time: S = γ S + kᵀ v, o = q S, with γ of equation 8."""
    _, H, L, D = q.shape
    gamma = torch.tensor([1 - 2.0 ** (-5 - h) for h in range(H)], dtype=q.dtype).view(H, 1, 1)
    state = torch.zeros(*q.shape[:2], D, D, dtype=q.dtype)
    rows = []
    for i in range(L):
        gain = torch.einsum("nhd,nhe->nhde", k[:, :, i], v[:, :, i])
        state = gamma * state + (gain if keys is None else gain * keys[..., i, None, None])
        rows.append(torch.einsum("nhd,nhde->nhe", q[:, :, i], state) / D**0.5)
    return torch.stack(rows, 2)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("L", [1, 5, CHUNK, 71, 2 * CHUNK])
def test_the_papers_recurrence(L: int, dtype: torch.dtype) -> None:
    for keys in (None, keys_of(L)):
        agree(
            lambda *x, keys=keys: attend_retention(*x, keys),
            lambda *x, keys=keys: from_the_paper(*x, keys),
            heads(L, L, dtype),
        )


def test_flash_linear_attention() -> None:
    agree(attend_retention, fla("retention").naive_retention, heads(71, 71, torch.float32))


@pytest.mark.parametrize("is_cached", [False, True])
def test_scores_beyond_half_precision(is_cached: bool) -> None:
    """What they are normalised from is out of its range, the normalised heads are not."""
    torch.manual_seed(0)
    module, x = Retention(12, 3), 60 * torch.randn(2, 7, 12)
    exact, half = (m(y, y, y, is_causal=True)[0] for m, y in pair(module, x))
    if is_cached:
        rows, cache = [], Cache()
        for i in range(7):
            new = x[:, i : i + 1].half()
            rows.append(module(new, new, new, need_weights=False, cache=cache)[0])
        half = torch.cat(rows, 1)
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.float(), exact, rtol=0, atol=0.01 * exact.abs().max().item())
    half.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in module.parameters() if p.grad is not None)


def pair(module: Retention, x: Tensor) -> Iterator[tuple[Retention, Tensor]]:
    """The module in float32, and then turned to half precision."""
    yield module, x
    yield module.half(), x.half()


def test_numbers_that_a_hand_can_check() -> None:
    """With q = k = 1 in one number, a weight is γ to the distance; the first γ is 31/32."""
    ones = torch.ones(1, 2, 3, 1)
    weights = retention_weights(ones, ones, ones)
    gamma = 31 / 32
    expected = torch.tensor([[1, 0, 0], [gamma, 1, 0], [gamma**2, gamma, 1]])
    torch.testing.assert_close(weights[0, 0], expected)
    torch.testing.assert_close(decays(2, ones), torch.tensor([31 / 32, 63 / 64]))


def test_the_module_written_out() -> None:
    """Projections, the heads' norm and the gate, in plain steps; equation 8's last two lines."""
    torch.manual_seed(0)
    module, x = Retention(6, 2).double(), torch.randn(3, 7, 6, dtype=torch.float64)
    q, k, v = ((x @ w.T).view(3, 7, 2, 3).transpose(1, 2) for w in module.in_proj_weight.chunk(3))
    heads = from_the_paper(q, k, v)
    heads = heads / (heads.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    gate = x @ module.gate_proj.weight.T
    gated = gate * gate.sigmoid() * heads.transpose(1, 2).reshape(3, 7, 6)
    expected = gated @ module.out_proj.weight.T
    output, _ = module(x, x, x, is_causal=True)
    torch.testing.assert_close(output, expected, rtol=1e-10, atol=1e-10)


def test_rotary_positions_are_the_papers_rotation() -> None:
    """Equation 5: q and k as complex numbers, turned by e^(inθ) and e^(-imθ); decay as before."""
    torch.manual_seed(0)
    E, H, D, L = 8, 2, 4, 7
    module, x = Retention(E, H, position=Turning()).double(), torch.randn(3, L, E).double()
    q, k = (
        torch.view_as_complex((x @ w.T).view(3, L, H, D // 2, 2)).transpose(1, 2)
        for w in module.in_proj_weight.chunk(3)[:2]
    )
    theta = 10000.0 ** (-torch.arange(0, D, 2).double() / D)
    distance = torch.arange(L)[:, None] - torch.arange(L)
    turn = torch.polar(torch.ones(L, L, D // 2).double(), distance[..., None] * theta)
    scores = torch.einsum("nhic,nhjc,ijc->nhij", q, k.conj(), turn).real / D**0.5
    gamma = torch.tensor([31 / 32, 63 / 64]).double().view(H, 1, 1)
    expected = scores * (gamma ** distance.clamp(min=0)).tril()
    weights = module(x, x, x, is_causal=True)[1]
    torch.testing.assert_close(weights, expected, rtol=1e-10, atol=1e-10)


def test_a_bias_is_refused() -> None:
    with pytest.raises(ValueError, match="Identity adds to the scores of a softmax, and retention"):
        Retention(6, 2, position=torch.nn.Identity())
