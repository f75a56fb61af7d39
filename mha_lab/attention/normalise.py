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
from mha_lab.by_hand import side_by_side


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
        temperature = self.log_temperature.exp().to(q.dtype)
        maps_per_head = q.shape[1] // len(temperature)
        if maps_per_head > 1:
            temperature = temperature.repeat_interleave(maps_per_head)
        return units(q, k, temperature)


def units(
    q: Float[Tensor, "N H L D"], k: Float[Tensor, "N Hk S D"], length: Float[Tensor, "H"]
) -> tuple[Float[Tensor, "N H L D"], Float[Tensor, "N Hk S D"]]:
    """Queries of a length for each head, keys of length 1; a vector of length 0 stays so."""
    length = length[:, None, None]
    if not is_plain(q, k, None):
        return F.normalize(q, dim=-1) * length, F.normalize(k, dim=-1)
    both: tuple[Tensor, Tensor] = _Units.apply(q, k, length)  # type: ignore[no-untyped-call]
    return both


class _Units(Function):
    """The same with a backward pass written out, which takes a third of the time."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        both = side_by_side(q, k)
        if both is None:
            factors = [length / _norm(q), 1 / _norm(k)]
            outputs = [q * factors[0], k * factors[1]]
        else:
            heads = [q.shape[1], k.shape[1]]
            lengths = torch.cat([length, length.new_ones(heads[1], 1, 1)])
            factor = lengths / _norm(both)
            factors, outputs = (list(x.split_with_sizes(heads, 1)) for x in (factor, both * factor))
        ctx.save_for_backward(q, k, length, *outputs, *factors)
        return outputs[0], outputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, length, *outputs = ctx.saved_tensors
        of_q, of_k = outputs[2:]
        if torch.is_grad_enabled():  # they are to have gradients too
            of_q, of_k = length / _norm(q), 1 / _norm(k)
        along_q, along_k = (_along(*each) for each in zip(grads, outputs, strict=False))
        of_length = along_q / length
        grad_q = _across(grads[0], outputs[0], of_length / length, of_q)
        grad_k = _across(grads[1], outputs[1], along_k, of_k)
        wanted = of_length.sum_to_size(length.shape) if ctx.needs_input_grad[2] else None
        return grad_q, grad_k, wanted


def _along(grad: Tensor, output: Tensor) -> Tensor:
    return (grad * output).sum(-1, keepdim=True)


def _across(grad: Tensor, output: Tensor, along: Tensor, factor: Tensor) -> Tensor:
    """The gradients of vectors that were multiplied by factor, without what lies along them."""
    across = torch.addcmul(grad, output, along, value=-1)
    return across * factor if torch.is_grad_enabled() else across.mul_(factor)


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
