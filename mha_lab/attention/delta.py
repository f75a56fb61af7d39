"""The delta rule [1]_ [2]_: before a value is stored, what its key recalls already is taken away.

S_i = S_(i-1) + k_i (β_i (v_i - S_(i-1)ᵀ k_i))ᵀ and heads_i = S_iᵀ q_i, where β_i = sigmoid(w·key_i)
says how much of the old is replaced, and q and k are of length 1 after a SiLU.

It is attention with the weights tril(q kᵀ / √D) (I + tril(diag(β) k kᵀ, -1))⁻¹ diag(β): that is
what the recurrence comes to when it is written out (equations 8 to 11 of [2]_, the WY form). Long
sequences are cut into chunks, each with a triangular matrix of its own; between them a state is
handed on, so time and memory are linear in the length. Each head's output goes through an RMSNorm.

Deviations from [2]_: no short convolutions before q, k and v (they are a mechanism of their own).
[1]_ had other features and a sum normalisation, which [2]_ replaced.

.. [1] Schlag et al., "Linear Transformers Are Secretly Fast Weight Programmers", 2021.
   https://arxiv.org/abs/2102.11174
.. [2] Yang et al., "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
   2024. https://arxiv.org/abs/2406.06484
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.multihead.checks import check_sizes
from mha_lab.attention.multihead.projection import join_heads
from mha_lab.attention.shown import shows_weights
from mha_lab.attention.states.calls import packed_projection, project, shaped
from mha_lab.attention.states.causal import refuse_all_but_causal, require_causal
from mha_lab.attention.states.chunks import cut, join, states_before
from mha_lab.attention.states.precision import exactly
from mha_lab.ranges import Probability, Size

CHUNK = 64
"""The fastest measured on a CPU, with heads of 32."""


class DeltaRule(nn.Module):
    """Attention that overwrites: a key seen again replaces the value that it had.

    Args:
        embed_dim: Width E of query, key, value and output; divisible by ``num_heads``.
        num_heads: Number of heads H; each is E / H wide.
        dropout: Probability of dropping a number of the heads' outputs in training.

    Raises:
        TypeError: A size is no whole number.
        ValueError: A size is below 1, E is not divisible by H, or dropout is outside [0, 1].
    """

    batch_first = True
    rows_sum_to_one = is_softmax = False
    knows_order = True
    _qkv_same_embed_dim = False
    """Read by ``nn.TransformerEncoderLayer``: False keeps it from skipping our forward."""

    def __init__(self, embed_dim: Size, num_heads: Size, dropout: Probability = 0.0) -> None:
        check_sizes(embed_dim, num_heads, dropout, embed_dim, embed_dim)
        super().__init__()
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.in_proj_weight, self.in_proj_bias = packed_projection(embed_dim)
        self.beta_proj = nn.Linear(embed_dim, num_heads, bias=False)
        self.norm = nn.RMSNorm(embed_dim // num_heads, eps=1e-6)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        nn.init.zeros_(self.out_proj.bias)

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """Say where the delta rule has no meaning.

        Raises:
            ValueError: The call is bidirectional, or between two sequences.
        """
        refuse_all_but_causal("the delta rule", is_causal=is_causal, is_cross=is_cross)

    def forward(
        self,
        query: Float[Tensor, "*N L E"],
        key: Float[Tensor, "*N L E"],
        value: Float[Tensor, "*N L E"],
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = False,
        is_causal: bool = False,
    ) -> tuple[Float[Tensor, "*N L E"], Float[Tensor, "..."] | None]:
        """Attend.

        Args:
            query: (N, L, E), or unbatched (L, E).
            key: (N, L, E) likewise.
            value: (N, L, E) likewise.
            key_padding_mask: (N, L), bool (True = blocked), or float of 0 and -inf.
            need_weights: Whether to return the weights, which takes L·L numbers.
            attn_mask: The causal mask, bool or float; needed unless ``is_causal``.
            average_attn_weights: Whether weights are the mean over the heads.
            is_causal: Whether query i sees keys 0..i only; needs no mask.

        Returns:
            The output (N, L, E), and the weights (N, H, L, L), averaged (N, L, L), or None. They
            may be negative, and rows have any sum. Where every key is blocked the output is
            ``out_proj.bias``.

        Raises:
            TypeError: An argument is of a wrong type or dtype.
            ValueError: A shape does not fit, the call is not causal, or a mask blocks more.
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
            mechanism="the delta rule",
        )
        require_causal("the delta rule", is_causal=seen.is_causal, L=q.shape[2], S=k.shape[2])
        beta = self.beta_proj(key).sigmoid().transpose(-1, -2).view(k.shape[:3])
        heads = attend_delta(q, k, v, beta, seen.keys)
        weights = delta_weights(q, k, v, beta, seen.keys) if need_weights else None
        heads = F.dropout(self.norm(heads.to(self.norm.weight.dtype)), self.dropout, self.training)
        output = self.out_proj(join_heads(heads, True))
        return shaped(output, weights, query, average_attn_weights)


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


def _attend(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, *, keys: Tensor | None) -> Tensor:
    L, D = q.shape[2:]
    if L <= CHUNK:  # one chunk is the matrix itself
        return _weights(q, k, beta, keys=keys) @ v
    beta = _of_keys(beta, keys).unsqueeze(-1)
    q, k = _unit(q) * float(D**-0.5), _unit(k)
    # What is stored is v - Sᵀk, of the state S that the chunk finds: T β v - (T β k) S.
    q, k, stored = (cut(x, CHUNK, L) for x in (q, k, torch.cat([k, v], -1) * beta))
    recalled = _recalled(k, cut(beta, CHUNK, L))
    stored = torch.linalg.solve_triangular(recalled, stored, upper=False, unitriangular=True)
    gains = k.transpose(-1, -2) @ stored
    lost, gained = gains.tensor_split([D], -1)
    before = states_before(gained, lambda state, i: state - lost[:, :, i] @ state + gained[:, :, i])
    of_k, of_v = stored.tensor_split([D], -1)
    within = (q @ k.transpose(-1, -2)).tril()
    return join(q @ before + within @ (of_v - of_k @ before), L)


def _weights(q: Tensor, k: Tensor, beta: Tensor, *, keys: Tensor | None) -> Tensor:
    q, k = _unit(q) * float(q.shape[-1] ** -0.5), _unit(k)
    beta = _of_keys(beta, keys).unsqueeze(-1)
    scores = (q @ k.transpose(-1, -2)).tril()
    inverted: Tensor = torch.linalg.solve_triangular(
        _recalled(k, beta), scores, upper=False, left=False, unitriangular=True
    )
    return inverted * beta.transpose(-1, -2)


def _recalled(k: Tensor, beta: Tensor) -> Tensor:
    """How much of each earlier value a key recalls (..., L, L), all below the diagonal."""
    return ((k * beta) @ k.transpose(-1, -2)).tril(-1)


def _unit(x: Tensor) -> Tensor:
    """Of length 1 after a SiLU, but for a small number that keeps the gradient finite."""
    x = F.silu(x)
    return x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()


def _of_keys(beta: Tensor, keys: Tensor | None) -> Tensor:
    """A key that does not count replaces nothing."""
    return beta if keys is None else torch.where(keys, beta, 0.0)
