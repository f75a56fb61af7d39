"""The delta rule against the paper's recurrence and against flash-linear-attention's own."""

import pytest
import torch
from state_cases import TOLERANCES, agree, fla, heads, keys_of
from torch import Tensor

from mha_lab.attention.delta import DeltaRule
from mha_lab.attention.states.delta import CHUNK, attend_delta, delta_weights


def betas(L: int, dtype: torch.dtype) -> Tensor:
    """From 0 to 1 (N, H, L)."""
    generator = torch.Generator().manual_seed(2)
    return torch.rand(2, 3, L, generator=generator, dtype=torch.float64).to(dtype)


def unit(x: Tensor) -> Tensor:
    """Of length 1 after a SiLU; 1e-6 as in flash-linear-attention."""
    x = x * x.sigmoid()
    return x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()


def from_the_paper(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, keys: Tensor | None = None
) -> Tensor:
    """S = S + β (v - S k) kᵀ and o = S q, a position at a time (equations 3 and 4)."""
    D = q.shape[-1]
    q, k = unit(q), unit(k)
    if keys is not None:
        beta = beta * keys
    state = torch.zeros(*q.shape[:2], D, D, dtype=q.dtype)
    rows = []
    for i in range(q.shape[2]):
        recalled = torch.einsum("nhed,nhd->nhe", state, k[:, :, i])
        new = beta[:, :, i, None] * (v[:, :, i] - recalled)
        state = state + torch.einsum("nhe,nhd->nhed", new, k[:, :, i])
        rows.append(torch.einsum("nhed,nhd->nhe", state, q[:, :, i]) / D**0.5)
    return torch.stack(rows, 2)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("L", [1, 5, CHUNK, 71, 2 * CHUNK + 3])
def test_the_papers_recurrence(L: int, dtype: torch.dtype) -> None:
    for keys in (None, keys_of(L)):
        agree(
            lambda *x, keys=keys: attend_delta(*x, keys),
            lambda *x, keys=keys: from_the_paper(*x, keys),
            (*heads(L, L, dtype), betas(L, dtype)),
        )


@pytest.mark.parametrize("theirs", ["delta_rule_recurrence", "delta_rule_chunkwise"])
def test_flash_linear_attention(theirs: str) -> None:
    """Their plain functions, given q and k of length 1."""
    function = getattr(fla("delta_rule"), theirs)

    def plain(q: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
        q, k = unit(q), unit(k)
        return function(q, k, v, beta)[0]  # type: ignore[no-any-return]

    agree(attend_delta, plain, (*heads(96, 96, torch.float32), betas(96, torch.float32)))


def test_the_map_is_that_of_flash_linear_attention() -> None:
    q, k, v = heads(128, 128, torch.float32)
    beta = betas(128, torch.float32)
    unit_q, unit_k = unit(q), unit(k)
    _, theirs = fla("delta_rule").delta_rule_parallel(unit_q, unit_k, v, beta)
    # Theirs is what meets β·v; ours, what meets v.
    torch.testing.assert_close(
        delta_weights(q, k, v, beta), theirs * beta.unsqueeze(-2), rtol=1e-4, atol=1e-5
    )


def test_a_key_seen_again_replaces_its_value() -> None:
    """The same key twice, β = 1: the third query, which asks for it, is given the second value."""
    key = torch.tensor([[[[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]]]])
    beta = torch.tensor([[[1.0, 1.0, 0.0]]])
    weights = delta_weights(key, key, key, beta)[0, 0]
    recalled = 2**-0.5  # a query of length 1 over √D
    torch.testing.assert_close(weights[1], torch.tensor([0.0, recalled, 0.0]))
    torch.testing.assert_close(weights[2], torch.tensor([0.0, recalled, 0.0]))


def test_the_module_written_out() -> None:
    torch.manual_seed(0)
    module, x = DeltaRule(6, 2).double(), torch.randn(3, 7, 6, dtype=torch.float64)
    q, k, v = ((x @ w.T).view(3, 7, 2, 3).transpose(1, 2) for w in module.in_proj_weight.chunk(3))
    beta = (x @ module.beta_proj.weight.T).sigmoid().transpose(1, 2)
    heads = from_the_paper(q, k, v, beta)
    heads = heads / (heads.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    expected = heads.transpose(1, 2).reshape(3, 7, 6) @ module.out_proj.weight.T
    output, _ = module(x, x, x, is_causal=True)
    torch.testing.assert_close(output, expected, rtol=1e-10, atol=1e-10)
