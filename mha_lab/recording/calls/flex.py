"""What ``flex_attention`` does to scores: its score_mod and its block mask, a few rows at a time.

Both are functions of one score and its indices (sample, head, query, key) [1]_; ``torch.vmap``
makes them functions of a block, as torch's own eager implementation does.

.. [1] Dong et al., "Flex Attention", 2024. https://arxiv.org/abs/2412.05496
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class FlexModification:
    """Changes scores as one call of ``flex_attention`` does.

    Attributes:
        score_mod: (score, sample, head, query, key) to a score.
        mask_mod: (sample, head, query, key) to whether the query may attend.
        samples: Which samples of the batch the scores are of (N,).
        heads: Which heads (H,).
    """

    score_mod: Callable[..., Tensor]
    mask_mod: Callable[..., Tensor]
    samples: Int[Tensor, " N"]
    heads: Int[Tensor, " H"]

    def select(self, samples: Any, heads: Any) -> FlexModification:
        """The same for some samples and heads."""
        return replace(self, samples=self.samples[samples], heads=self.heads[heads])

    def __call__(self, scores: Float[Tensor, "N H R S"], start: int) -> Float[Tensor, "N H R S"]:
        """Change the scores of queries start, start + 1, ..."""
        # Lets a mod index a tensor by an index that vmap maps over: bias[head, query - key].
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

        rows, keys = scores.shape[-2:]
        indices = (
            self.samples,
            self.heads,
            torch.arange(start, start + rows, device=scores.device),
            torch.arange(keys, device=scores.device),
        )
        with torch._C._EnableTorchFunction(), TransformGetItemToIndex():
            modified = _over_block(self.score_mod, (0,))(scores, *indices)
            allowed = _over_block(self.mask_mod, ())(*indices)
            return torch.where(allowed, modified.to(scores.dtype), -torch.inf)


def _over_block(mod: Callable[..., Tensor], first: tuple[int, ...]) -> Callable[..., Tensor]:
    """A function of one index each as one of four axes; what comes first has all of them."""
    for axis in (3, 2, 1, 0):  # the last one is mapped innermost
        in_dims = (*first, *(0 if i == axis else None for i in range(4)))
        mod = torch.vmap(mod, in_dims=in_dims)
    return mod


def is_flex_attention(func: Callable[..., Any]) -> bool:
    """Whether this is the operator that ``flex_attention`` calls when it runs eagerly."""
    return operator_name(func) == "flex_attention"


def operator_name(func: Callable[..., Any]) -> str:
    """The name of a higher-order operator; "" of another function."""
    return func._name if isinstance(func, torch._ops.HigherOrderOperator) else ""
