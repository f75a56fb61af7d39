"""A variant as someone would write it: softmax and products by hand."""

import torch
from torch import Tensor, nn


class ByHand(nn.Module):
    """One head that compares inputs as they are; torch's call, batch first."""

    def __init__(self, embed_dim: int, num_heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.values = nn.Linear(embed_dim, embed_dim)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool | None = None,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        scores = query @ key.transpose(1, 2)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None], -1e9)
        if is_causal or attn_mask is not None:
            scores = scores + torch.full(scores.shape[1:], -1e9).triu(1)
        weights = scores.softmax(-1)
        return weights @ self.values(value), weights
