"""Linear attention against the paper's equations and against flash-linear-attention's own."""

import pytest
import torch
from state_cases import TOLERANCES, agree, fla, heads, keys_of
from torch import Tensor

from mha_lab.attention.states.linear import CHUNK, attend_linear, features, linear_weights


def from_the_paper(q: Tensor, k: Tensor, v: Tensor, keys: Tensor | None, is_causal: bool) -> Tensor:
    """Equations 8 and 9, a query at a time: φ(q)ᵀ Σ φ(k) vᵀ / φ(q)ᵀ Σ φ(k)."""
    rows = []
    for i in range(q.shape[2]):
        last = i + 1 if is_causal else k.shape[2]
        phi_k = torch.nn.functional.elu(k[:, :, :last]) + 1
        if keys is not None:
            phi_k = phi_k * keys[..., :last, None]
        phi_q = torch.nn.functional.elu(q[:, :, i]) + 1
        state = torch.einsum("nhsd,nhse->nhde", phi_k, v[:, :, :last])
        total = torch.einsum("nhd,nhd->nh", phi_q, phi_k.sum(2))
        rows.append(torch.einsum("nhd,nhde->nhe", phi_q, state) / total[..., None])
    return torch.stack(rows, 2)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("L", "S"), [(5, 7), (7, 5), (71, 71), (2 * CHUNK, 2 * CHUNK), (67, 101)])
def test_the_papers_equations(L: int, S: int, is_causal: bool, dtype: torch.dtype) -> None:
    tensors = heads(L, S, dtype)
    for keys in (None, keys_of(S)):
        agree(
            lambda *x, keys=keys: attend_linear(*x, keys, is_causal),
            lambda *x, keys=keys: from_the_paper(*x, keys, is_causal),
            tensors,
        )


def test_flash_linear_attention() -> None:
    """Their plain recurrence, given our features, in their layout (N, L, H, D)."""
    theirs = fla("linear_attn").naive_recurrent_linear_attn

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (features(q), features(k), v))
        output, _ = theirs(q, k, v, normalize=True)
        return output.transpose(1, 2)  # type: ignore[no-any-return]

    agree(lambda *x: attend_linear(*x, None, True), plain, heads(71, 71, torch.float32))


def test_numbers_that_a_hand_can_check() -> None:
    """With q = k = 0 every feature is 1: the mean of what is seen."""
    zeros, v = torch.zeros(1, 1, 3, 2), torch.tensor([[[[1.0, 2.0], [3.0, 4.0], [8.0, 9.0]]]])
    means = torch.tensor([[[[1.0, 2.0], [2.0, 3.0], [4.0, 5.0]]]])
    torch.testing.assert_close(attend_linear(zeros, zeros, v, None, True), means)
    weights = linear_weights(zeros, zeros, v, torch.tensor([[[True, False, True]]]), False)
    torch.testing.assert_close(weights[0, 0, 0], torch.tensor([0.5, 0.0, 0.5]))


def test_features_where_elu_rounds_to_minus_one() -> None:
    """elu + 1 is 0 in float32 below -17; a key there still has its share."""
    x = torch.full((1, 1, 2, 3), -30.0, requires_grad=True)
    weights = linear_weights(x, x, x)
    torch.testing.assert_close(weights, torch.full((1, 1, 2, 2), 0.5))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("S", [5, 3 * CHUNK])
def test_features_that_round_to_nothing_keep_rows_and_gradients(S: int, is_causal: bool) -> None:
    """With scores of any size a row sums to 1: φ(-200) is 0 in float32, and so are products."""
    sizes = torch.tensor([-1e4, -200.0, -90.0, -40.0, 1e4])
    for of_q in sizes:
        for of_k in sizes:
            q, k = (torch.full((1, 1, S, 3), float(x), requires_grad=True) for x in (of_q, of_k))
            v = torch.ones(1, 1, S, 2)
            output = attend_linear(q, k, v, None, is_causal)
            torch.testing.assert_close(output, v)
            torch.testing.assert_close(linear_weights(q, k, v, None, is_causal).sum(-1), v[..., 0])
            for grad in torch.autograd.grad(output.square().sum(), (q, k)):
                assert grad.isfinite().all()
