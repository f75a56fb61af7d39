"""Retention on projected heads: a state that decays, and the matrix that it stands for.

The formula is that of :mod:`mha_lab.attention.retention`.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mha_lab.attention.cache import Cache
from mha_lab.attention.shown import shows_weights
from mha_lab.attention.states.chunks import cut, join, states_before
from mha_lab.attention.states.decoding import attend_from
from mha_lab.attention.states.precision import exactly

CHUNK = 32
"""The fastest measured on a CPU, with heads of 32."""


def retention_weights(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H L D"],
    v: Float[Tensor, "N H L D"],
    keys: Bool[Tensor, "#N #H L"] | None = None,
) -> Float[Tensor, "N H L L"]:
    """The matrix that ``attend_retention`` multiplies the values with; the same arguments."""
    return exactly(_weights, q, k, keys=keys)


@shows_weights(retention_weights)
def attend_retention(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H L D"],
    v: Float[Tensor, "N H L D"],
    keys: Bool[Tensor, "#N #H L"] | None = None,
) -> Float[Tensor, "N H L D"]:
    """The heads' outputs before they are normalised, without their weights.

    They grow with the scores, beyond what half precision holds, and so are in at least float32.

    Args:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, L, D).
        v: Projected values (N, H, L, D).
        keys: Which keys count, broadcastable to (N, H, L); None means all.
    """
    return exactly(_attend, q, k, v, keys=keys)


def retention_from(
    cache: Cache | None,
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H L D"],
    v: Float[Tensor, "N H L D"],
    keys: Bool[Tensor, "#N #H L"] | None = None,
) -> Float[Tensor, "N H L D"]:
    """The same, of queries that see what a cache holds too."""
    return attend_from(
        cache,
        q,
        k,
        whole=lambda: attend_retention(q, k, v, keys),
        after=lambda state: exactly(_state_after, k, v, keys=keys, state=state),
        read=lambda state: exactly(lambda q: _scaled(q) @ state, q),
    )


def decays(num_heads: int, like: Tensor) -> Float[Tensor, "H"]:
    """γ of each head, 1 - 2^(-5 - h): 0.969, 0.984, ... (section 2.2)."""
    heads = torch.arange(num_heads, device=like.device, dtype=like.dtype)
    return 1 - 2 ** (-5 - heads)


def _attend(q: Tensor, k: Tensor, v: Tensor, *, keys: Tensor | None) -> Tensor:
    H, L = q.shape[1:3]
    if L <= CHUNK:  # one chunk is the matrix itself
        return _weights(q, k, keys=keys) @ v
    q, k, v = cut(_scaled(q), CHUNK, L), cut(_of_keys(k, keys), CHUNK, L), cut(v, CHUNK, L)
    gamma = decays(H, q).view(H, 1, 1)
    step = torch.arange(CHUNK, device=q.device)
    from_start, to_end = gamma ** (step + 1).view(-1, 1), gamma ** (CHUNK - 1 - step).view(-1, 1)
    gains = (k * to_end.unsqueeze(1)).transpose(-1, -2) @ v
    of_chunk = gamma**CHUNK
    before = states_before(lambda state, gain: gain + of_chunk * state, gains)
    within = (q @ k.transpose(-1, -2)) * _decay_matrix(gamma, CHUNK).unsqueeze(1)
    return join((q * from_start.unsqueeze(1)) @ before + within @ v, L)


def _state_after(
    k: Tensor, v: Tensor, *, keys: Tensor | None, state: Tensor | None
) -> Float[Tensor, "N H D D"]:
    """The state behind these keys, each of which has faded since."""
    H, L = k.shape[1:3]
    gamma = decays(H, k).view(H, 1, 1)
    to_end = gamma ** torch.arange(L - 1, -1, -1, device=k.device).view(-1, 1)
    gain = (_of_keys(k, keys) * to_end).transpose(-1, -2) @ v
    return gain if state is None else gain + gamma**L * state


def _weights(q: Tensor, k: Tensor, *, keys: Tensor | None) -> Tensor:
    H, L = q.shape[1:3]
    scores = _scaled(q) @ _of_keys(k, keys).transpose(-1, -2)
    return scores * _decay_matrix(decays(H, q).view(H, 1, 1), L)


def _decay_matrix(gamma: Float[Tensor, "H 1 1"], length: int) -> Float[Tensor, "H L L"]:
    """γ^(i - j) where j ≤ i, else 0."""
    step = torch.arange(length, device=gamma.device)
    return (gamma ** (step[:, None] - step).clamp(min=0)).tril()


def _scaled(q: Tensor) -> Tensor:
    return q * float(q.shape[-1] ** -0.5)


def _of_keys(k: Tensor, keys: Tensor | None) -> Tensor:
    return k if keys is None else torch.where(keys.unsqueeze(-1), k, 0.0)
