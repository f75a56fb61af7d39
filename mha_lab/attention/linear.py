"""Linear attention [1]_: the exponential of a score becomes a product of features.

weights_ij = φ(q_i)·φ(k_j) / Σ_l φ(q_i)·φ(k_l), with φ(x) = elu(x) + 1, the sum over allowed keys.

So every query reads the same sum Σ_j φ(k_j) v_jᵀ of D×D numbers: time and memory are linear in the
length. Under a causal mask the sums grow along the sequence, and long ones are cut into chunks.

Deviations from the paper: no ε below the fraction (φ is above 0, and a row without keys gives 0).

.. [1] Katharopoulos et al., "Transformers are RNNs: Fast Autoregressive Transformers with Linear
   Attention", 2020. https://arxiv.org/abs/2006.16236
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.multihead.checks import check_sizes
from mha_lab.attention.multihead.projection import join_heads
from mha_lab.attention.shown import shows_weights
from mha_lab.attention.states.calls import packed_projection, project, shaped
from mha_lab.attention.states.chunks import cut, join
from mha_lab.attention.states.precision import exactly
from mha_lab.ranges import Probability, Size

CHUNK = 32
"""The fastest measured on a CPU, with heads of 32."""


class LinearAttention(nn.Module):
    """Attention whose weights are products of features elu(x) + 1, linear in the length.

    Args:
        embed_dim: Width E of query, key, value and output; divisible by ``num_heads``.
        num_heads: Number of heads H; each is E / H wide.
        dropout: Probability of dropping a number of the heads' outputs in training; there are no
            weights to drop.

    Raises:
        TypeError: A size is no whole number.
        ValueError: A size is below 1, E is not divisible by H, or dropout is outside [0, 1].
    """

    batch_first = True
    _qkv_same_embed_dim = False
    """Read by ``nn.TransformerEncoderLayer``: False keeps it from skipping our forward."""

    def __init__(self, embed_dim: Size, num_heads: Size, dropout: Probability = 0.0) -> None:
        check_sizes(embed_dim, num_heads, dropout, embed_dim, embed_dim)
        super().__init__()
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.in_proj_weight, self.in_proj_bias = packed_projection(embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        nn.init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Float[Tensor, "*N L E"],
        key: Float[Tensor, "*N S E"],
        value: Float[Tensor, "*N S E"],
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = False,
        is_causal: bool = False,
    ) -> tuple[Float[Tensor, "*N L E"], Float[Tensor, "..."] | None]:
        """Attend.

        Args:
            query: (N, L, E), or unbatched (L, E).
            key: (N, S, E) likewise.
            value: (N, S, E) likewise.
            key_padding_mask: (N, S), bool (True = blocked), or float of 0 and -inf.
            need_weights: Whether to return the weights, which takes L·S numbers.
            attn_mask: The causal mask, or one that blocks the same keys for every query; bool, or
                float of 0 and -inf.
            average_attn_weights: Whether weights are the mean over the heads.
            is_causal: Whether query i sees keys 0..i only; needs no mask.

        Returns:
            The output (N, L, E), and the weights (N, H, L, S), averaged (N, L, S), or None. Rows
            sum to 1, or to 0 where every key is blocked; the output is then ``out_proj.bias``.

        Raises:
            TypeError: An argument is of a wrong type or dtype.
            ValueError: A shape does not fit, or a mask is one that a state cannot take.
        """
        q, k, v, seen = project(
            query,
            key,
            value,
            self.in_proj_weight,
            self.in_proj_bias,
            num_heads=self.num_heads,
            key_padding_mask=key_padding_mask,
            attn_mask=attn_mask,
            is_causal=is_causal,
            mechanism="linear attention",
        )
        heads = attend_linear(q, k, v, *seen)
        weights = linear_weights(q, k, v, *seen) if need_weights else None
        heads = F.dropout(heads, self.dropout, self.training)
        return shaped(self.out_proj(join_heads(heads, True)), weights, query, average_attn_weights)


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


def features(x: Tensor) -> Tensor:
    """elu(x) + 1, above 0 also where elu rounds to -1 (x < -17 in float32)."""
    return x.clamp(max=0).exp() + x.relu()


def _features_of_keys(k: Tensor, keys: Tensor | None) -> Tensor:
    return features(k) if keys is None else torch.where(keys.unsqueeze(-1), features(k), 0.0)


def _attend_to_all(q: Tensor, k: Tensor, v: Tensor, *, keys: Tensor | None) -> Tensor:
    state = _features_of_keys(k, keys).transpose(-1, -2) @ _with_ones(v)
    return _normalised(features(q) @ state)


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
