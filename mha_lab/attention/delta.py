"""The delta rule [1]_ [2]_: before a value is stored, what its key recalls already is taken away.

S_i = S_(i-1) + k_i (β_i (v_i - S_(i-1)ᵀ k_i))ᵀ and heads_i = S_iᵀ q_i, where β_i = sigmoid(w·key_i)
says how much of the old is replaced, and q and k are of length 1 after a SiLU.

It is attention with the weights tril(q kᵀ / √D) (I + tril(diag(β) k kᵀ, -1))⁻¹ diag(β): that is
what the recurrence comes to when it is written out (the WY form of [2]_). Long
sequences are cut into chunks, each with a triangular matrix of its own; between them a state is
handed on, so time and memory are linear in the length. Each head's output goes through an RMSNorm.

Deviations from [2]_: no short convolutions before q, k and v (they are a mechanism of their own),
and the projections of q, k, v and the output have biases.
[1]_ had other features and a sum normalisation, which [2]_ replaced.

.. [1] Schlag et al., "Linear Transformers Are Secretly Fast Weight Programmers", 2021.
   https://arxiv.org/abs/2102.11174
.. [2] Yang et al., "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
   2024. https://arxiv.org/abs/2406.06484
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.attention.cache import Cache
from mha_lab.attention.multihead.checks import check_sizes
from mha_lab.attention.multihead.projection import join_heads
from mha_lab.attention.states.calls import packed_projection, project, shaped
from mha_lab.attention.states.causal import refuse_all_but_causal, require_causal
from mha_lab.attention.states.delta import delta_from, delta_weights
from mha_lab.ranges import Probability, Size


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
        check_sizes(embed_dim, num_heads, dropout)
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
            "the delta rule",
            query,
            key,
            value,
            key_padding_mask,
            attn_mask,
            is_causal=is_causal,
            need_weights=need_weights,
            cache=cache,
        )
        require_causal("the delta rule", is_causal=seen.is_causal, L=q.shape[2], S=k.shape[2])
        beta = self.beta_proj(key).sigmoid().transpose(-1, -2).view(k.shape[:3])
        heads = delta_from(cache, q, k, v, beta, seen.keys)
        weights = delta_weights(q, k, v, beta, seen.keys) if need_weights else None
        heads = F.dropout(self.norm(heads.to(self.norm.weight.dtype)), self.dropout, self.training)
        output = self.out_proj(join_heads(heads, True))
        return shaped(output, weights, query, average_attn_weights)
