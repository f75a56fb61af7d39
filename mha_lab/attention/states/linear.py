"""Linear attention on projected heads: one state for all queries, and the matrix it stands for.

The formula is that of :mod:`mha_lab.attention.linear`.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from mha_lab.attention.cache import Cache
from mha_lab.attention.shown import shows_weights
from mha_lab.attention.states.chunks import cut, join
from mha_lab.attention.states.decoding import attend_from
from mha_lab.attention.states.precision import exactly

CHUNK = 32
"""The fastest measured on a CPU, with heads of 32."""


def linear_weights(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    v: Float[Tensor, "N H S D"],
    keys: Bool[Tensor, "#N #H S"] | None = None,
    is_causal: bool = False,
) -> Float[Tensor, "N H L S"]:
    """The matrix that ``attend_linear`` multiplies the values with; the same arguments."""
    return exactly(_weights, q, k, keys=keys, is_causal=is_causal).to(v.dtype)


@shows_weights(linear_weights)
def attend_linear(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    v: Float[Tensor, "N H S D"],
    keys: Bool[Tensor, "#N #H S"] | None = None,
    is_causal: bool = False,
) -> Float[Tensor, "N H L D"]:
    """The heads' outputs, without their weights.

    Args:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        v: Projected values (N, H, S, D).
        keys: Which keys count, broadcastable to (N, H, S); None means all.
        is_causal: Whether query i sees keys 0..i only.
    """
    attend = _attend_causally if is_causal else _attend_to_all
    return exactly(attend, q, k, v, keys=keys).to(v.dtype)


def linear_from(
    cache: Cache | None,
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    v: Float[Tensor, "N H S D"],
    keys: Bool[Tensor, "#N #H S"] | None = None,
    is_causal: bool = False,
) -> Float[Tensor, "N H L D"]:
    """The same, of queries that see what a cache holds too."""
    return attend_from(
        cache,
        q,
        k,
        whole=lambda: attend_linear(q, k, v, keys, is_causal),
        after=lambda state: exactly(_state_after, k, v, keys=keys, state=state),
        read=lambda state: exactly(lambda q: _normalised(features(q) @ state), q).to(v.dtype),
    )


def features(x: Tensor) -> Tensor:
    """elu(x) + 1, above 0 also where elu rounds to -1 (x < -17 in float32).

    Its floor is so small that nothing is seen of it, and so large that no product of two rounds to
    0, which would make a row of nothing and gradients that are no numbers.
    """
    return x.clamp(min=math.log(torch.finfo(x.dtype).tiny) / 3, max=0).exp() + x.relu()


def _features_of_keys(k: Tensor, keys: Tensor | None) -> Tensor:
    return features(k) if keys is None else torch.where(keys.unsqueeze(-1), features(k), 0.0)


def _attend_to_all(q: Tensor, k: Tensor, v: Tensor, *, keys: Tensor | None) -> Tensor:
    return _normalised(features(q) @ _state_after(k, v, keys=keys, state=None))


def _state_after(
    k: Tensor, v: Tensor, *, keys: Tensor | None, state: Tensor | None
) -> Float[Tensor, "N H D D+1"]:
    """Σ φ(k_j) (v_j, 1)ᵀ over these keys, added to the state before them."""
    gain = _features_of_keys(k, keys).transpose(-1, -2) @ _with_ones(v)
    return gain if state is None else state + gain


def _attend_causally(q: Tensor, k: Tensor, v: Tensor, *, keys: Tensor | None) -> Tensor:
    L, S = q.shape[2], k.shape[2]
    if max(L, S) <= CHUNK:  # one chunk is the matrix itself
        return _weights(q, k, keys=keys, is_causal=True) @ v
    q = cut(features(q), CHUNK, L)
    k = cut(_features_of_keys(k, keys), CHUNK, L)
    v = cut(_with_ones(v), CHUNK, L)
    gains = k.transpose(-1, -2) @ v
    before = F.pad(gains[:, :, :-1].cumsum(2), (0, 0, 0, 0, 1, 0))
    within = (q @ k.transpose(-1, -2)).tril() @ v
    return _normalised(join(q @ before + within, L))


def _with_ones(v: Tensor) -> Tensor:
    """Values with a column of ones, which sums the weights."""
    return F.pad(v, (0, 1), value=1.0)


def _normalised(sums: Tensor) -> Tensor:
    """Divide by the last column, the sum of the weights; a row without keys is 0."""
    values, total = sums[..., :-1], sums[..., -1:]
    return values / torch.where(total > 0, total, 1.0)


def _weights(q: Tensor, k: Tensor, *, keys: Tensor | None, is_causal: bool) -> Tensor:
    weights = features(q) @ _features_of_keys(k, keys).transpose(-1, -2)
    if is_causal:
        weights = weights.tril()
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total > 0, total, 1.0)
