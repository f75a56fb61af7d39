"""Linear attention [1]_: the exponential of a score becomes a product of features.

weights_ij = φ(q_i)·φ(k_j) / Σ_l φ(q_i)·φ(k_l), with φ(x) = elu(x) + 1, the sum over allowed keys.

So every query reads the same sum Σ_j φ(k_j) v_jᵀ of D×D numbers: time and memory are linear in the
length. Under a causal mask the sums grow along the sequence, and long ones are cut into chunks.

Deviations from the paper: no ε below the fraction. φ is above 0, in float32 from about 1e-13 on,
and a row without keys gives 0.

.. [1] Katharopoulos et al., "Transformers are RNNs: Fast Autoregressive Transformers with Linear
   Attention", 2020. https://arxiv.org/abs/2006.16236
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.attention.cache import Cache
from mha_lab.attention.multihead.checks import check_sizes
from mha_lab.attention.multihead.projection import join_heads
from mha_lab.attention.states.calls import packed_projection, project, shaped
from mha_lab.attention.states.linear import linear_from, linear_weights
from mha_lab.ranges import Probability, Size


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
        check_sizes(embed_dim, num_heads, dropout)
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
        *,
        cache: Cache | None = None,
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
            cache: Holds the state of earlier keys; their masks were heeded when they came. A
                ``key_padding_mask`` speaks of them too; weights are those of a first call alone.

        Returns:
            The output (N, L, E), and the weights (N, H, L, S), averaged (N, L, S), or None. Rows
            sum to 1, or to 0 where every key is blocked; the output is then ``out_proj.bias``.

        Raises:
            TypeError: An argument is of a wrong type or dtype.
            ValueError: A shape does not fit, or a mask is one that a state cannot take.
        """
        q, k, v, seen = project(
            self,
            "linear attention",
            query,
            key,
            value,
            key_padding_mask,
            attn_mask,
            is_causal=is_causal,
            need_weights=need_weights,
            cache=cache,
        )
        heads = linear_from(cache, q, k, v, *seen)
        weights = linear_weights(q, k, v, *seen) if need_weights else None
        heads = F.dropout(heads, self.dropout, self.training)
        return shaped(self.out_proj(join_heads(heads, True)), weights, query, average_attn_weights)
