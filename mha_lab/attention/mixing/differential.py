"""Differential attention [1]_: the difference of two maps, so that what is common cancels out.

Each head of width D has two maps of width D / 2, from the halves of its q and k, and one v:
weights = softmax(q₁ k₁ᵀ / √(D/2)) - λ softmax(q₂ k₂ᵀ / √(D/2)), with
λ = exp(λq₁·λk₁) - exp(λq₂·λk₂) + λ₀ for all heads. Each head's output is then divided by its root
mean square, and multiplied by 1 - λ₀. (So H is the paper's h, and D its 2d.)

Deviations from the paper: λ₀ is the same in every layer (0.8, which the paper's ablations find as
good as its schedule by depth), the projections have biases, and the norm has no weights, as in
transformers' DiffLlama (in the authors' code it has).

.. [1] Ye et al., "Differential Transformer", 2024, section 2.1. https://arxiv.org/abs/2410.05258
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.ranges import Probability


class Differential(nn.Module):
    """The first map of each head, minus λ times its second.

    Args:
        head_dim: D, even.
        lambda_init: λ₀.

    Raises:
        ValueError: D is odd, or λ₀ outside [0, 1].
    """

    maps_per_head = 2
    is_within_heads = True
    rows_sum_to_one = False

    def __init__(self, *, head_dim: int, lambda_init: Probability = 0.8) -> None:
        if head_dim % 2:
            raise ValueError(
                f"differential attention halves each head, and embed_dim / num_heads = {head_dim} "
                "is odd; choose an embed_dim that is divisible by 2 · num_heads"
            )
        if not 0 <= lambda_init <= 1:
            raise ValueError(f"lambda_init must be from 0 to 1, got {lambda_init}")
        super().__init__()
        self.lambda_init = lambda_init
        half = head_dim // 2
        self.lambda_q = nn.Parameter(torch.normal(0, 0.1, (2, half)))
        self.lambda_k = nn.Parameter(torch.normal(0, 0.1, (2, half)))

    def forward(self, weights: Float[Tensor, "N 2H L S"]) -> Float[Tensor, "N H L S"]:
        """The difference of each head's two maps."""
        return weights[:, 0::2] - self._lambda().to(weights.dtype) * weights[:, 1::2]

    def factors(self) -> Float[Tensor, "1"]:
        """What the second map of each head is multiplied by and then added to the first."""
        return -self._lambda().view(1)

    def _lambda(self) -> Tensor:
        first, second = (self.lambda_q * self.lambda_k).sum(-1).exp()
        lam: Tensor = first - second + self.lambda_init
        return lam

    def finish(self, heads: Float[Tensor, "N H L D"]) -> Float[Tensor, "N H L D"]:
        """Normalise each head's output, of which little may be left."""
        return F.rms_norm(heads, heads.shape[-1:], eps=1e-5) * (1 - self.lambda_init)

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"lambda_init={self.lambda_init}"
