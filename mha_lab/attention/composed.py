"""Attention from parts: what all mechanisms have in common, written once.

    q, k, v = project(query, key, value)        H query heads, kv_heads key and value heads
    q, k    = normalise(q, k)                   qk_norm: none, cosine, rms
    q, k    = position.rotate(q, k)             encodings that act on queries and keys
    scores  = q kᵀ · scale                      1/√D, unless the norm has a temperature
    scores  = mixing.mix_scores(scores)         talking heads
    scores  = cap · tanh(scores / cap)          softcap
    scores  = scores + bias + float masks       encodings that act on scores
    allowed = masks ∧ pattern(L, S)             causal, padding, window, ...
    weights = weighting(scores, allowed)        softmax and its rivals; blocked is exactly 0
    weights = mixing(weights)                   none, talking heads, differential
    heads   = dropout(weights) v
    output  = out_proj(gate(mixing.finish(heads), query))

What is added comes after the cap, as in Gemma 2 [1]_ and in flash-attention: a mask of -1e9 blocks,
cap or no cap. This is the reference; ``fused`` computes the same faster, where the parts allow it.

The gate is that of [2]_: heads · σ(W query), one number for each of the heads' outputs. With
kv_heads below H, query head h meets key and value head ⌊h · kv_heads / H⌋: grouped-query attention
[3]_, and with one for all multi-query attention [4]_. ``qk_norm=cosine`` makes q and k of length 1
and each head's scores τ · q·k with a learned τ [5]_ instead of 1/√D; ``rms`` divides both by their
root mean square and multiplies by learned weights (D,) [6]_.

.. [1] Gemma Team, "Gemma 2", 2024, section 2. https://arxiv.org/abs/2408.00118
.. [2] Qiu et al., "Gated Attention for Large Language Models", 2025, at position G1.
   https://arxiv.org/abs/2505.06708
.. [3] Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
   Checkpoints", 2023. https://arxiv.org/abs/2305.13245
.. [4] Shazeer, "Fast Transformer Decoding: One Write-Head is All You Need", 2019.
   https://arxiv.org/abs/1911.02150
.. [5] Henry et al., "Query-Key Normalization for Transformers", 2020.
   https://arxiv.org/abs/2010.04245
.. [6] Qwen Team, "Qwen3 Technical Report", 2025. https://arxiv.org/abs/2505.09388
"""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.attention import parts
from mha_lab.attention.cache import Cache
from mha_lab.attention.grouped import check_kv_heads, project_grouped
from mha_lab.attention.mixing.none import NoMixing
from mha_lab.attention.multihead.checks import check_inputs, check_sizes
from mha_lab.attention.multihead.masks import (
    Sizes,
    check_masks,
    warn_if_zeros_and_ones,
)
from mha_lab.attention.multihead.projection import join_heads
from mha_lab.attention.normalise import NoNorm, make_norm
from mha_lab.attention.patterns.full import Full
from mha_lab.attention.pipeline import Steps, attend_and_show
from mha_lab.attention.seen import bias_of_maps, seen
from mha_lab.attention.telling import check_position, cut_and_turned, extend, turned
from mha_lab.attention.weighting.softmax import Softmax
from mha_lab.projected import Heads
from mha_lab.ranges import Positive, Probability, Size


class ComposedAttention(nn.Module):
    """Attention whose steps are chosen one by one; see :mod:`mha_lab.attention.parts`.

    Args:
        embed_dim: Width E of query, key, value and output; divisible by ``num_heads``.
        num_heads: Number of heads H; each is D = E / H wide.
        dropout: Probability of dropping an attention weight in training.
        weighting: From scores to weights.
        pattern: Who may see whom.
        mixing: Between heads.
        position: An encoding that acts on queries and keys (it has ``rotate``) or on scores
            (``score_bias`` or ``bias``).
        kv_heads: How many key and value heads there are; None means H.
        qk_norm: What is done to q and k: ``none``, ``cosine`` or ``rms``.
        softcap: Bound of the scores; None means none.
        gate: Whether the heads' outputs are gated by the query.
        cross: What becomes of a pattern where keys come from another sequence: ``refuse``, or
            ``full``: a call whose key is another tensor than its query goes without it.
        bias: Whether the projections have biases.

    Raises:
        TypeError: A size is no whole number.
        ValueError: A value is out of its range, or parts do not go together.
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
        weighting: parts.Factory = Softmax,
        pattern: parts.Factory = Full,
        mixing: parts.Factory = NoMixing,
        position: nn.Module | None = None,
        kv_heads: Size | None = None,
        qk_norm: Literal["none", "cosine", "rms"] = "none",
        softcap: Positive | None = None,
        gate: bool = False,
        cross: Literal["refuse", "full"] = "refuse",
        bias: bool = True,
    ) -> None:
        kv_heads = num_heads if kv_heads is None else kv_heads
        check_sizes(embed_dim, num_heads, dropout)
        _check_choices(kv_heads, num_heads, softcap, cross, position)
        super().__init__()
        self.embed_dim, self.num_heads, self.kv_heads = embed_dim, num_heads, kv_heads
        self.head_dim, self.dropout = embed_dim // num_heads, dropout
        self.softcap, self.cross = softcap, cross
        self.has_judged_float_mask = False
        known = {"num_heads": num_heads, "head_dim": self.head_dim}
        self.weighting = parts.make_part(weighting, **known)
        self.pattern = parts.make_part(pattern, **known)
        self.mixing = parts.make_part(mixing, **known)
        self.maps_per_head: int = parts.ask(self.mixing, "maps_per_head", 1)
        if self.head_dim % self.maps_per_head:
            raise ValueError(
                f"embed_dim / num_heads must be divisible by {self.maps_per_head}, the maps of a "
                f"head, got {embed_dim} / {num_heads} = {self.head_dim}"
            )
        self.position = position
        map_dim = self.head_dim // self.maps_per_head
        self.qk_norm = make_norm(qk_norm, num_heads=num_heads, head_dim=map_dim)
        self.scale = self.qk_norm.scale or 1 / math.sqrt(map_dim)
        rows = embed_dim + 2 * kv_heads * self.head_dim
        self.in_proj_weight = nn.Parameter(torch.empty(rows, embed_dim))
        self.in_proj_bias = nn.Parameter(torch.zeros(rows)) if bias else None
        self.gate_proj = nn.Linear(embed_dim, embed_dim, bias=bias) if gate else None
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        nn.init.xavier_uniform_(self.in_proj_weight)
        if bias:
            nn.init.zeros_(self.out_proj.bias)

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """Say whether the parts have a meaning where the module is to stand.

        Args:
            is_causal: Whether every query will see earlier keys only.
            is_cross: Whether keys and values will come from another sequence than the queries.

        Raises:
            ValueError: One has none; the sentence says what to choose instead.
        """
        parts.refuse(self.weighting, is_causal=is_causal, is_cross=is_cross)
        parts.refuse(self.mixing, is_causal=is_causal, is_cross=is_cross)
        if not (is_cross and self.cross == "full"):
            parts.refuse(self.pattern, is_causal=is_causal, is_cross=is_cross)

    @property
    def rows_sum_to_one(self) -> bool:
        """Whether each row of weights is a distribution."""
        return all(parts.ask(x, "rows_sum_to_one", True) for x in (self.weighting, self.mixing))

    @property
    def is_softmax(self) -> bool:
        """Whether adding m to a score multiplies its weight by exp(m), before rows are summed."""
        return bool(parts.ask(self.weighting, "is_softmax", False)) and isinstance(
            self.mixing, NoMixing
        )

    @property
    def knows_order(self) -> bool:
        """Whether it makes a difference where a key stands."""
        return (
            self.position is not None
            or not isinstance(self.pattern, Full)
            or parts.ask(self.weighting, "knows_order", False)
        )

    @property
    def steps(self) -> Steps:
        """What lies between projected queries and keys and the heads' outputs."""
        return Steps(
            self.weighting, self.mixing, self.scale, self.softcap, self.num_heads, self.kv_heads
        )

    def forward(
        self,
        query: Float[Tensor, "*N L E"],
        key: Float[Tensor, "*N S E"],
        value: Float[Tensor, "*N S E"],
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool | None = None,
        is_causal: bool = False,
        *,
        cache: Cache | None = None,
    ) -> tuple[Float[Tensor, "*N L E"], Float[Tensor, "..."] | None]:
        """Attend.

        Args:
            query: (N, L, E), or unbatched (L, E).
            key: (N, S, E) likewise.
            value: (N, S, E) likewise.
            key_padding_mask: (N, S), bool (True = blocked) or float (added to the scores).
            need_weights: Whether to return the weights. The output is the same.
            attn_mask: (L, S), (N·H, L, S), (N, H, L, S) or what broadcasts to the latter; bool
                (True = blocked) or float (added to the scores).
            average_attn_weights: Whether weights are the mean over the heads.
            is_causal: Whether query i sees keys 0..i only; needs no mask, and beside one both
                apply.
            cache: Holds earlier keys, to which these are added; then S counts them all.

        Returns:
            The output (N, L, E), and the weights that were applied to the values, before dropout:
            (N, H, L, S), averaged (N, L, S), or None if not needed. Where every key of a query is
            blocked, its weights are 0 and its output is ``out_proj.bias``.

        Raises:
            TypeError: An argument is of a wrong type or dtype.
            ValueError: A shape does not fit, or the pattern has no meaning between two sequences.
        """
        E = self.embed_dim
        check_inputs(
            query, key, value, widths=(E, E, E), batch_first=True, like=self.in_proj_weight
        )
        start, x = 0 if cache is None else cache.length, query
        q, k, v = self._heads(query, key, value, start)
        if cache is not None:
            k, v, x = extend(cache, self.position, x, k=k, v=v)
        sizes = Sizes(q.shape[0], self.num_heads, q.shape[2], k.shape[2])
        check_masks(attn_mask, key_padding_mask, query, sizes)
        if not (self.has_judged_float_mask or torch.compiler.is_compiling()):
            self.has_judged_float_mask = warn_if_zeros_and_ones(attn_mask, key_padding_mask)
        bias, mask, is_causal = seen(
            attn_mask,
            key_padding_mask,
            is_causal=is_causal,
            sizes=sizes,
            like=q,
            pattern=self._pattern(sizes, query, key),
            bias=bias_of_maps(self.position, q, k, x, start, num_heads=self.num_heads),
            start=start,
        )
        dropout_p = self.dropout if self.training else 0.0
        heads, weights = attend_and_show(
            q, k, v, bias, mask, is_causal, self.steps, dropout_p, need_weights=need_weights
        )
        finish = parts.ask(self.mixing, "finish", None)
        heads = heads if finish is None else finish(heads)
        joined = join_heads(heads, batch_first=True)
        if self.gate_proj is not None:
            joined = joined * self.gate_proj(query).sigmoid()
        output = self.out_proj(joined)
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if query.ndim == 2:
            return output.squeeze(0), None if weights is None else weights.squeeze(0)
        return output, weights

    def _heads(self, query: Tensor, key: Tensor, value: Tensor, start: int) -> tuple[Heads, ...]:
        projected = project_grouped(
            query,
            key,
            value,
            self.in_proj_weight,
            self.in_proj_bias,
            head_dim=self.head_dim,
            maps_per_head=self.maps_per_head,
        )
        if isinstance(self.qk_norm, NoNorm):
            return cut_and_turned(self.position, projected, start)
        q, k, v = (heads for each in projected for heads in each.cut())
        q, k = self.qk_norm(q, k)
        return *turned(self.position, q, k, start), v

    def _pattern(self, sizes: Sizes, query: Tensor, key: Tensor) -> Tensor | None:
        if key is not query and self.cross == "full":
            return None
        if key.shape[-2] != query.shape[-2]:
            parts.refuse(self.pattern, is_causal=False, is_cross=True)
        pattern: Tensor | None = self.pattern(sizes.L, sizes.S, query.device)
        return pattern

    def extra_repr(self) -> str:
        """What ``print`` shows besides the parts."""
        return (
            f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, kv_heads={self.kv_heads}, "
            f"softcap={self.softcap}, cross={self.cross}"
        )


def _check_choices(
    kv_heads: int, num_heads: int, softcap: float | None, cross: str, position: nn.Module | None
) -> None:
    check_kv_heads(kv_heads, num_heads)
    if softcap is not None and not 0 < softcap < math.inf:
        raise ValueError(f"softcap must be above 0, or None, got {softcap}")
    if cross not in ("refuse", "full"):
        raise ValueError(f"cross must be refuse or full, got {cross!r}")
    check_position(position)
