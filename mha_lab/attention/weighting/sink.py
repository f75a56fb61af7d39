"""Softmax with a learned sink: weights_j = exp(z_j) / (exp(s_h) + Σ_l exp(z_l)).

One more key without a value, whose score s_h is learned, one a head, as in gpt-oss [1]_: what
attention sinks [2]_ do with the first token, without the token.

.. [1] OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card", 2025.
   https://arxiv.org/abs/2508.10925
.. [2] Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2023.
   https://arxiv.org/abs/2309.17453
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.parts import SoftmaxOver


class Sink(nn.Module):
    """Softmax of which a learned share goes to nothing.

    Args:
        num_heads: H, each with a sink of its own.
    """

    is_softmax = True
    rows_sum_to_one = False

    def __init__(self, *, num_heads: int) -> None:
        super().__init__()
        self.score = nn.Parameter(torch.zeros(num_heads))

    def forward(
        self, scores: Float[Tensor, "N H L S"], allowed: Bool[Tensor, "..."]
    ) -> Float[Tensor, "N H L S"]:
        """Softmax beside the sink's score."""
        return softmax_beside(scores, self.score)

    def as_softmax(self, allowed: Callable[[], Tensor]) -> SoftmaxOver:
        """A softmax with one key more."""
        return SoftmaxOver(extra_score=self.score)


def softmax_beside(
    scores: Float[Tensor, "N MH L S"], extra: Float[Tensor, "H"]
) -> Float[Tensor, "N MH L S"]:
    """Softmax over the scores and one more, whose weight is left out.

    Args:
        scores: Of M maps a head.
        extra: The further score of each head.
    """
    extra = extra.to(scores.dtype).repeat_interleave(scores.shape[1] // len(extra))
    column = extra[:, None, None].expand(*scores.shape[:3], 1)
    return torch.cat([scores, column], dim=-1).softmax(-1)[..., :-1]
