"""Multi-head latent attention (MLA) [1]_: keys and values are made from one narrow vector a token.

c = RMSNorm(W_dkv key), k_h = W_uk c, v_h = W_uv c: a cache has to hold c alone, ``kv_rank`` numbers
a token. Queries may go through a narrow vector of their own (``q_rank``). Then softmax attention.

A rotation cannot pass the narrow layer, so rotary positions act on numbers beside it: each query
head has ``rotary_dim`` more, and all heads share one more key of that width, straight from the
input. Scores are (q·k + q_r·k_r) / √(D + rotary_dim). Without such positions there are none of
these (``rotary_dim`` is not used); an encoding that adds to the scores is added.

The source of truth is transformers' DeepSeek-V3. The defaults are of this project's small models:
the authors take kv_rank = 4·D, where E is 40·D in V2 and 56·D in V3. Deviation: ``out_proj`` has a
bias.

.. [1] DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1. https://arxiv.org/abs/2405.04434
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.attention.allowed import with_bias
from mha_lab.attention.cache import Cache
from mha_lab.attention.multihead.attend import attend
from mha_lab.attention.multihead.checks import check_inputs, check_sizes
from mha_lab.attention.multihead.masks import Sizes, check_masks, merge_masks
from mha_lab.attention.multihead.projection import join_heads
from mha_lab.attention.telling import bias_of, extend, turned
from mha_lab.projected import Heads
from mha_lab.ranges import Probability, Size


class LatentAttention(nn.Module):
    """Softmax attention whose keys and values come from one narrow vector a token.

    Args:
        embed_dim: Width E of query, key, value and output; divisible by ``num_heads``.
        num_heads: Number of heads H; each is D = E / H wide.
        dropout: Probability of dropping an attention weight in training.
        kv_rank: Width of what keys and values are made from; None means 2·D.
        q_rank: Width of what queries are made from; None means the query itself.
        rotary_dim: How many numbers of a head are rotated, beside its D; None means D / 2. Used
            only with rotary positions.
        position: An encoding that acts on queries and keys (``rotate``) or on scores (``bias`` or
            ``score_bias``), or None.

    Raises:
        TypeError: A size is no whole number.
        ValueError: A size is below 1, E is not divisible by H, dropout is outside [0, 1], or
            rotary_dim is odd.
    """

    batch_first = True
    _qkv_same_embed_dim = False
    """Read by ``nn.TransformerEncoderLayer``: False keeps it from skipping our forward."""

    def __init__(
        self,
        embed_dim: Size,
        num_heads: Size,
        dropout: Probability = 0.0,
        *,
        kv_rank: Size | None = None,
        q_rank: Size | None = None,
        rotary_dim: Size | None = None,
        position: nn.Module | None = None,
    ) -> None:
        check_sizes(embed_dim, num_heads, dropout)
        D = embed_dim // num_heads
        kv_rank = 2 * D if kv_rank is None else kv_rank
        R = max(2, D // 4 * 2) if rotary_dim is None else rotary_dim
        _check_ranks(kv_rank=kv_rank, q_rank=embed_dim if q_rank is None else q_rank, rotary_dim=R)
        super().__init__()
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = D
        self.rotary_dim = R if hasattr(position, "rotate") else 0
        self.dropout = dropout
        self.position = position
        self.kv_rank = kv_rank
        self.q_down = None if q_rank is None else nn.Linear(embed_dim, q_rank, bias=False)
        self.q_norm = None if q_rank is None else nn.RMSNorm(q_rank, eps=1e-6)
        q_width = num_heads * (D + self.rotary_dim)
        self.q_up = nn.Linear(embed_dim if q_rank is None else q_rank, q_width, bias=False)
        self.kv_down = nn.Linear(embed_dim, kv_rank + self.rotary_dim, bias=False)
        self.kv_norm = nn.RMSNorm(kv_rank, eps=1e-6)
        self.kv_up = nn.Linear(kv_rank, 2 * embed_dim, bias=False)
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
        """Attend; arguments, results and errors are those of ``MultiheadAttention``, batch first.

        Args:
            query: (N, L, E), or unbatched (L, E).
            key: (N, S, E) likewise.
            value: (N, S, E) likewise.
            key_padding_mask: (N, S), bool (True = blocked) or float (added to the scores).
            need_weights: Whether to return the weights. The output is the same.
            attn_mask: Any mask that broadcasts to (N, H, L, S), or (N·H, L, S).
            average_attn_weights: Whether weights are the mean over the heads.
            is_causal: Whether query i sees keys 0..i only.
            cache: Holds the narrow vectors of earlier keys, to which these are added; then S
                counts them all. Key and value must be one tensor.

        Returns:
            The output (N, L, E), and the weights (N, H, L, S), averaged (N, L, S), or None.

        Raises:
            TypeError: An argument is of a wrong type or dtype.
            ValueError: An argument's shape does not fit the module or the other arguments.
        """
        E = self.embed_dim
        like = self.out_proj.weight
        check_inputs(query, key, value, widths=(E, E, E), batch_first=True, like=like)
        is_batched = query.ndim == 3
        if not is_batched:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
        if key_padding_mask is not None and not is_batched and key_padding_mask.ndim == 1:
            key_padding_mask = key_padding_mask.unsqueeze(0)
        start = 0 if cache is None else cache.length
        q, k, v, x = self._project(query, key, value, cache)
        sizes = Sizes(q.shape[0], self.num_heads, q.shape[2], k.shape[2])
        check_masks(attn_mask, key_padding_mask, query, sizes)
        mask, is_causal = merge_masks(
            attn_mask,
            key_padding_mask,
            is_causal=is_causal,
            sizes=sizes,
            like=q,
            earlier_keys=start,
        )
        bias = None if self.rotary_dim else bias_of(self.position, q, k, x, start)
        mask, is_causal = with_bias(bias, mask, is_causal, q, sizes.S)
        output, weights = attend(
            q,
            k,
            F.pad(v, (0, self.rotary_dim)),  # kernels want values as wide as keys
            mask,
            is_causal=is_causal,
            dropout_p=self.dropout if self.training else 0.0,
            need_weights=need_weights,
            average=average_attn_weights,
        )
        output = self.out_proj(join_heads(output[..., : self.head_dim], True))
        if is_batched:
            return output, weights
        return output.squeeze(0), None if weights is None else weights.squeeze(0)

    def _project(
        self, query: Tensor, key: Tensor, value: Tensor, cache: Cache | None
    ) -> tuple[Heads, Heads, Heads, Tensor]:
        """Q and k (N, H, L|S, D + R), v (N, H, S, D), and the queries that a bias may read."""
        D, R = self.head_dim, self.rotary_dim
        x = query
        if self.q_down is not None and self.q_norm is not None:
            query = self.q_norm(_as(self.q_down(query), self.q_norm))
        q = self.q_up(query).unflatten(-1, (self.num_heads, D + R)).transpose(1, 2)
        narrow, k_turned = self._narrow(key)
        if R:
            q, q_turned = q.tensor_split([D], -1)
            start = 0 if cache is None else cache.length
            q_turned, k_turned = turned(self.position, q_turned, k_turned, start)
            q = torch.cat([q, q_turned], -1)
        if cache is not None:
            if value is not key:
                raise ValueError(
                    "a cache of latent attention holds one narrow vector a token, so value must be "
                    "the same tensor as key; call it without a cache for values of their own"
                )
            narrow, k_turned, x = extend(cache, self.position, x, narrow=narrow, turned=k_turned)
        k, v = self._widen(narrow)
        if value is not key:
            _, v = self._widen(self._narrow(value)[0])
        if R:
            k = torch.cat([k, k_turned.expand(-1, self.num_heads, -1, -1)], -1)
        return q, k, v, x

    def _narrow(self, x: Tensor) -> tuple[Tensor, Heads]:
        """What keys and values are made of (N, S, kv_rank), and the key to be turned (N, 1, S, R).

        These are all that a cache holds.
        """
        narrow, to_turn = self.kv_down(x).tensor_split([self.kv_rank], -1)
        return self.kv_norm(_as(narrow, self.kv_norm)), to_turn.unsqueeze(1)

    def _widen(self, narrow: Tensor) -> tuple[Heads, Heads]:
        """K and v (N, H, S, D)."""
        both = self.kv_up(narrow).unflatten(-1, (self.num_heads, 2 * self.head_dim))
        k, v = both.transpose(1, 2).chunk(2, -1)
        return k, v


def _check_ranks(**ranks: int) -> None:
    for name, rank in ranks.items():
        if not isinstance(rank, int) or isinstance(rank, bool):
            raise TypeError(f"{name} must be a whole number, got {rank!r}")
        if rank < 1:
            raise ValueError(f"{name} must be at least 1, got {name}={rank}")
    if ranks["rotary_dim"] % 2:
        raise ValueError(f"rotary_dim must be even, got rotary_dim={ranks['rotary_dim']}")


def _as(x: Tensor, norm: nn.RMSNorm) -> Tensor:
    """In the dtype of a norm's weight, which autocast leaves alone."""
    return x.to(norm.weight.dtype)
