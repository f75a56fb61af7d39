"""Retention [1]_: a score counts for less, by a factor of its head, for each step back.

weights_ij = γ_h^(i - j) · q_i·k_j / √D for j ≤ i, with γ_h = 1 - 2^(-5 - h); no softmax. Then each
head's output is divided by its root mean square, and gated: out_proj(swish(query W_g) · heads).

A state of D×D numbers, S_i = γ S_(i-1) + k_i v_iᵀ, holds all that a later query reads, so time and
memory are linear in the length; long sequences are cut into chunks.

Deviations from the paper: values are as wide as keys; all projections but the gate's have biases;
the rotation of q and k is left to ``position=rotary``; the three normalisations of a row of scores
(section 2.2) are left out, since the division by the root mean square (RMSNorm in place of
GroupNorm, as in the authors' later code) undoes any factor of a row.

.. [1] Sun et al., "Retentive Network: A Successor to Transformer for Large Language Models", 2023.
   https://arxiv.org/abs/2307.08621
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.attention.cache import Cache
from mha_lab.attention.multihead.checks import check_sizes
from mha_lab.attention.multihead.projection import join_heads
from mha_lab.attention.states.calls import packed_projection, project, shaped
from mha_lab.attention.states.causal import refuse_all_but_causal, require_causal
from mha_lab.attention.states.retention import retention_from, retention_weights
from mha_lab.attention.telling import turned
from mha_lab.ranges import Probability, Size


class Retention(nn.Module):
    """Attention without a softmax, in which each head forgets at a rate of its own.

    Args:
        embed_dim: Width E of query, key, value and output; divisible by ``num_heads``.
        num_heads: Number of heads H; each is E / H wide.
        dropout: Probability of dropping a number of the heads' outputs in training.
        position: An encoding that turns queries and keys, as the paper's does, or None.

    Raises:
        TypeError: A size is no whole number.
        ValueError: A size is below 1, E is not divisible by H, dropout is outside [0, 1], or the
            encoding acts on scores.
    """

    batch_first = True
    rows_sum_to_one = is_softmax = False
    knows_order = True
    _qkv_same_embed_dim = False
    """Read by ``nn.TransformerEncoderLayer``: False keeps it from skipping our forward."""

    def __init__(
        self,
        embed_dim: Size,
        num_heads: Size,
        dropout: Probability = 0.0,
        *,
        position: nn.Module | None = None,
    ) -> None:
        check_sizes(embed_dim, num_heads, dropout)
        if position is not None and not hasattr(position, "rotate"):
            raise ValueError(
                f"{type(position).__name__} adds to the scores of a softmax, and retention, whose "
                "decay tells distances already, has none; choose position=rotary, none, or one "
                "that adds to the embeddings, such as sinusoidal"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.position = position
        self.in_proj_weight, self.in_proj_bias = packed_projection(embed_dim)
        self.gate_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        nn.init.zeros_(self.out_proj.bias)

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """Say where retention has no meaning.

        Raises:
            ValueError: The call is bidirectional, or between two sequences.
        """
        refuse_all_but_causal("retention", is_causal=is_causal, is_cross=is_cross)

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
        *,
        cache: Cache | None = None,
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
            cache: Holds the state of earlier keys; their masks were heeded when they came. A
                ``key_padding_mask`` speaks of them too; weights are those of a first call alone.

        Returns:
            The output (N, L, E), and the weights (N, H, L, L), averaged (N, L, L), or None. They
            may be negative, and rows have any sum. Where every key is blocked the output is
            ``out_proj.bias``.

        Raises:
            TypeError: An argument is of a wrong type or dtype.
            ValueError: A shape does not fit, the call is not causal, or a mask blocks more.
        """
        q, k, v, seen = project(
            self,
            "retention",
            query,
            key,
            value,
            key_padding_mask,
            attn_mask,
            is_causal=is_causal,
            need_weights=need_weights,
            cache=cache,
        )
        require_causal("retention", is_causal=seen.is_causal, L=q.shape[2], S=k.shape[2])
        q, k = turned(self.position, q, k, 0 if cache is None else cache.length)
        heads = retention_from(cache, q, k, v, seen.keys)
        weights = retention_weights(q, k, v, seen.keys) if need_weights else None
        heads = F.rms_norm(heads, heads.shape[-1:], eps=1e-6).to(v.dtype)
        heads = F.dropout(heads, self.dropout, self.training)
        output = self.out_proj(F.silu(self.gate_proj(query)) * join_heads(heads, True))
        return shaped(output, weights, query, average_attn_weights)
