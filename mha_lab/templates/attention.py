"""Attends by the angle between query and key: softmax(q̂ k̂ᵀ · scale) v, of unit vectors q̂ and k̂.

Name your paper or source here.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.attention.functional import attention_scores, attention_weights
from mha_lab.attention.multihead.masks import Sizes, check_masks, merge_masks
from mha_lab.ranges import Positive, Probability, Size


class TemplateAttention(nn.Module):
    """Attention with torch's call, batch first.

    Args:
        embed_dim: Width E of query and output; divisible by ``num_heads``.
        num_heads: Number of heads H.
        dropout: Probability of dropping a weight in training.
        scale: What the cosines are multiplied with; an option of its own, set by attention.scale.

    Raises:
        ValueError: ``embed_dim`` is not divisible by ``num_heads``.
    """

    def __init__(
        self,
        embed_dim: Size,
        num_heads: Size,
        *,
        dropout: Probability = 0.0,
        scale: Positive = 10.0,
    ) -> None:
        if embed_dim % num_heads:
            raise ValueError(
                f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}"
            )
        super().__init__()
        self.num_heads = num_heads
        self.dropout = dropout
        self.scale = scale
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(embed_dim, embed_dim) for _ in range(4)
        )

    def forward(
        self,
        query: Float[Tensor, "N L E"],
        key: Float[Tensor, "N S E"],
        value: Float[Tensor, "N S E"],
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool | None = None,
        is_causal: bool = False,
    ) -> tuple[Float[Tensor, "N L E"], Tensor | None]:
        """Attend; arguments and result are those of ``nn.MultiheadAttention``.

        Returns:
            The output (N, L, E), and the weights (N, H, L, S), averaged (N, L, S), or None.
        """
        q, k, v = (self._heads(self.q_proj(query)), self._heads(self.k_proj(key)),
                   self._heads(self.v_proj(value)))  # fmt: skip
        sizes = Sizes(q.shape[0], self.num_heads, q.shape[2], k.shape[2])
        check_masks(attn_mask, key_padding_mask, query, sizes)
        # One mask of all that blocks; inside, True attends.
        mask, is_causal = merge_masks(
            attn_mask, key_padding_mask, is_causal=is_causal, sizes=sizes, like=q
        )
        # attention_scores divides by the root of the width, which unit vectors have no use for.
        unit_q = F.normalize(q, dim=-1) * self.scale * q.shape[-1] ** 0.5
        weights = attention_weights(
            attention_scores(unit_q, F.normalize(k, dim=-1), mask, is_causal)
        ).to(v.dtype)
        heads = torch.dropout(weights, self.dropout, self.training) @ v
        output: Tensor = self.out_proj(heads.transpose(1, 2).flatten(2))
        if not need_weights:
            return output, None
        return output, weights.mean(1) if average_attn_weights else weights

    def _heads(self, x: Tensor) -> Float[Tensor, "N H L D"]:
        """Cut (N, L, E) into heads."""
        head_dim = x.shape[-1] // self.num_heads
        return x.view(*x.shape[:-1], self.num_heads, head_dim).transpose(1, 2)
