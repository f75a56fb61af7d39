"""What is done to queries and keys before they meet, so that scores cannot grow without bound.

- ``cosine``: q and k of length 1, and a learned temperature τ a head instead of √D:
  score = τ · q·k / (‖q‖ ‖k‖) [1]_. One a head, kept positive as exp, and begun at 10, as in [2]_
  (where it is also bounded by 100; here it is not).
- ``rms``: q / rms(q) · w_q, k / rms(k) · w_k, with weights (D,) that the heads share, then 1/√D,
  as in Qwen3 [3]_.

.. [1] Henry et al., "Query-Key Normalization for Transformers", 2020.
   https://arxiv.org/abs/2010.04245
.. [2] Liu et al., "Swin Transformer V2", 2021. https://arxiv.org/abs/2111.09883
.. [3] Qwen Team, "Qwen3 Technical Report", 2025. https://arxiv.org/abs/2505.09388
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import Function

from mha_lab.attention.multihead.blocks import is_plain


def capped(scores: Float[Tensor, "..."], cap: float) -> Float[Tensor, "..."]:
    """Cap · tanh(scores / cap), by a sigmoid: it takes a fifth of the time of a tanh on a CPU."""
    return (scores * (2 / cap)).sigmoid_().mul(2 * cap).sub_(cap)


class NoNorm(nn.Module):
    """Leaves q and k as they are."""

    scale: float | None = None
    """Factor of q·k that makes the scores; None means 1/√D."""

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Q and k."""
        return q, k


class CosineNorm(nn.Module):
    """Scores are cosines times a learned temperature.

    Args:
        num_heads: H, each with a temperature of its own.
        start: The temperature that training begins with.
    """

    scale: float | None = 1.0

    def __init__(self, num_heads: int, start: float = 10.0) -> None:
        super().__init__()
        self.log_temperature = nn.Parameter(torch.full((num_heads,), math.log(start)))

    def forward(
        self, q: Float[Tensor, "N H L D"], k: Float[Tensor, "N Hk S D"]
    ) -> tuple[Float[Tensor, "N H L D"], Float[Tensor, "N Hk S D"]]:
        """Both of length 1, q then times the temperature."""
        temperature = (
            self.log_temperature.exp()
            .to(q.dtype)
            .repeat_interleave(q.shape[1] // len(self.log_temperature))
        )
        return unit(q, temperature[:, None, None]), unit(k, q.new_ones(1, 1, 1))


def unit(x: Float[Tensor, "N H L D"], length: Float[Tensor, "#H 1 1"]) -> Float[Tensor, "N H L D"]:
    """Vectors of a length; one of length 0 stays so."""
    if not is_plain(x, x, None):
        return F.normalize(x, dim=-1) * length
    turned: Tensor = _OfLength.apply(x, length)  # type: ignore[no-untyped-call]
    return turned


class _OfLength(Function):
    """The same with a backward pass written out, which takes a third of the time."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, length: Tensor) -> Tensor:
        output = x * (length / _norm(x))
        ctx.save_for_backward(x, length, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None]:
        x, length, output = ctx.saved_tensors
        along = (grad * output).sum(-1, keepdim=True) / length
        across = torch.addcmul(grad, output, along / length, value=-1)
        grad_length = along.sum_to_size(length.shape) if ctx.needs_input_grad[1] else None
        return across * (length / _norm(x)), grad_length


def _norm(x: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return norm.clamp(min=1e-12)


class RMSNorms(nn.Module):
    """Root mean square 1, times learned weights.

    Args:
        head_dim: D.
    """

    scale: float | None = None

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        self.q_norm = nn.RMSNorm(head_dim, eps=1e-6)
        self.k_norm = nn.RMSNorm(head_dim, eps=1e-6)

    def forward(
        self, q: Float[Tensor, "N H L D"], k: Float[Tensor, "N Hk S D"]
    ) -> tuple[Float[Tensor, "N H L D"], Float[Tensor, "N Hk S D"]]:
        """Both normalised."""
        return self.q_norm(q), self.k_norm(k)


def make_norm(qk_norm: str, *, num_heads: int, head_dim: int) -> NoNorm | CosineNorm | RMSNorms:
    """The norm of this name.

    Raises:
        ValueError: There is none.
    """
    match qk_norm:
        case "none":
            return NoNorm()
        case "cosine":
            return CosineNorm(num_heads)
        case "rms":
            return RMSNorms(head_dim)
    raise ValueError(f"qk_norm must be none, cosine or rms, got {qk_norm!r}")
