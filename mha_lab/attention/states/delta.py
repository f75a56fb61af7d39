"""The delta rule on projected heads: a state that is overwritten, and the matrix it stands for.

The formula is that of :mod:`mha_lab.attention.delta`.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from mha_lab.attention.cache import Cache
from mha_lab.attention.shown import shows_weights
from mha_lab.attention.states.chunks import cut, join, states_before
from mha_lab.attention.states.decoding import attend_from
from mha_lab.attention.states.precision import exactly

CHUNK = 64
"""The fastest measured on a CPU, with heads of 32."""


def delta_weights(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H L D"],
    v: Float[Tensor, "N H L D"],
    beta: Float[Tensor, "N H L"],
    keys: Bool[Tensor, "#N #H L"] | None = None,
) -> Float[Tensor, "N H L L"]:
    """The matrix that ``attend_delta`` multiplies the values with; the same arguments."""
    return exactly(_weights, q, k, beta, keys=keys).to(v.dtype)


@shows_weights(delta_weights)
def attend_delta(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H L D"],
    v: Float[Tensor, "N H L D"],
    beta: Float[Tensor, "N H L"],
    keys: Bool[Tensor, "#N #H L"] | None = None,
) -> Float[Tensor, "N H L D"]:
    """The heads' outputs before they are normalised, without their weights.

    Args:
        q: Projected queries (N, H, L, D), of any length.
        k: Projected keys (N, H, L, D), of any length.
        v: Projected values (N, H, L, D).
        beta: How much of the old a key replaces, from 0 to 1 (N, H, L).
        keys: Which keys count, broadcastable to (N, H, L); None means all.
    """
    return exactly(_attend, q, k, v, beta, keys=keys).to(v.dtype)


def delta_from(
    cache: Cache | None,
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H L D"],
    v: Float[Tensor, "N H L D"],
    beta: Float[Tensor, "N H L"],
    keys: Bool[Tensor, "#N #H L"] | None = None,
) -> Float[Tensor, "N H L D"]:
    """The same, of queries that see what a cache holds too."""
    return attend_from(
        cache,
        q,
        k,
        whole=lambda: attend_delta(q, k, v, beta, keys),
        after=lambda state: exactly(_state_after, k, v, beta, keys=keys, state=state),
        read=lambda state: exactly(lambda q: _scaled(q) @ state, q).to(v.dtype),
    )


def _attend(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, *, keys: Tensor | None) -> Tensor:
    L, D = q.shape[2:]
    if L <= CHUNK:  # one chunk is the matrix itself
        return _weights(q, k, beta, keys=keys) @ v
    beta = _of_keys(beta, keys).unsqueeze(-1)
    q, k = _scaled(q), _unit(k)
    # What is stored is v - Sᵀk, of the state S that the chunk finds: T β v - (T β k) S.
    q, k, stored = (cut(x, CHUNK, L) for x in (q, k, torch.cat([k, v], -1) * beta))
    recalled = _recalled(k, cut(beta, CHUNK, L))
    stored = torch.linalg.solve_triangular(recalled, stored, upper=False, unitriangular=True)
    gains = k.transpose(-1, -2) @ stored
    lost, gained = gains.tensor_split([D], -1)
    before = states_before(lambda state, lost, gained: state - lost @ state + gained, lost, gained)
    of_k, of_v = stored.tensor_split([D], -1)
    within = (q @ k.transpose(-1, -2)).tril()
    return join(q @ before + within @ (of_v - of_k @ before), L)


def _weights(q: Tensor, k: Tensor, beta: Tensor, *, keys: Tensor | None) -> Tensor:
    q, k = _scaled(q), _unit(k)
    beta = _of_keys(beta, keys).unsqueeze(-1)
    scores = (q @ k.transpose(-1, -2)).tril()
    inverted: Tensor = torch.linalg.solve_triangular(
        _recalled(k, beta), scores, upper=False, left=False, unitriangular=True
    )
    return inverted * beta.transpose(-1, -2)


def _state_after(
    k: Tensor, v: Tensor, beta: Tensor, *, keys: Tensor | None, state: Tensor | None
) -> Float[Tensor, "N H D D"]:
    """The state behind these keys: what each stores is less what the ones before make it recall."""
    k, beta = _unit(k), _of_keys(beta, keys).unsqueeze(-1)
    new = v if state is None else v - k @ state
    stored = torch.linalg.solve_triangular(
        _recalled(k, beta), beta * new, upper=False, unitriangular=True
    )
    gain: Tensor = k.transpose(-1, -2) @ stored
    return gain if state is None else state + gain


def _recalled(k: Tensor, beta: Tensor) -> Tensor:
    """How much of each earlier value a key recalls (..., L, L), all below the diagonal."""
    return ((k * beta) @ k.transpose(-1, -2)).tril(-1)


def _unit(x: Tensor) -> Tensor:
    """Of length 1 after a SiLU, but for a small number that keeps the gradient finite."""
    x = F.silu(x)
    return x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()


def _scaled(q: Tensor) -> Tensor:
    return _unit(q) * float(q.shape[-1] ** -0.5)


def _of_keys(beta: Tensor, keys: Tensor | None) -> Tensor:
    """A key that does not count replaces nothing."""
    return beta if keys is None else torch.where(keys, beta, 0.0)
