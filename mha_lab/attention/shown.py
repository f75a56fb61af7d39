"""How a mechanism shows the weights that it applied, to whoever watches.

A recorder sees calls of functions that declare themselves overridable (``torch.overrides``). So a
mechanism that ends in :func:`weigh_values` is recorded by itself, whatever made its weights, and
one that never makes them (a state, a kernel) says how to with :func:`shows_weights`. Nothing else
is needed, and where nobody watches neither costs more than one check.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function


def shows_weights(
    weights_of: Callable[..., Tensor],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function that attends show its weights.

    The function becomes overridable by ``torch.overrides`` modes, under which it is one call, and
    has an ``attention_weights``, which is weights_of. Recorders call that beside it, without
    gradient. What happens inside the function is not seen again.

    Example:
        >>> @shows_weights(retention_weights)
        ... def retain(q, k, v, decay): ...

    Args:
        weights_of: Takes the function's own arguments, and returns the weights (N, H, L, S) that
            it applies to its values, before dropout. The values are the function's argument ``v``
            or ``value``, (N, H, S, D), if it has one.

    Returns:
        A decorator.
    """

    def decorate(attend: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(attend)
        def shown(*args: Any, **kwargs: Any) -> Any:
            tensors = tuple(x for x in (*args, *kwargs.values()) if isinstance(x, Tensor))
            if has_torch_function(tensors):
                return handle_torch_function(shown, tensors, *args, **kwargs)
            return attend(*args, **kwargs)

        shown.attention_weights = weights_of  # type: ignore[attr-defined]
        return shown

    return decorate


def _as_they_are(weights: Tensor, v: Tensor, dropout_p: float = 0.0) -> Tensor:
    return weights


@shows_weights(_as_they_are)
def weigh_values(
    weights: Float[Tensor, "N H L S"], v: Float[Tensor, "N H S D"], dropout_p: float = 0.0
) -> Float[Tensor, "N H L D"]:
    """The last step of attention: each query's weighted sum of the values.

    Args:
        weights: As they are applied, (N, H, L, S), in at least the precision of v.
        v: Projected values (N, H, S, D).
        dropout_p: Probability of dropping a weight; recorded are the weights before.

    Returns:
        The heads' outputs (N, H, L, D) in the dtype of v.
    """
    return (F.dropout(weights, dropout_p) @ v.to(weights.dtype)).to(v.dtype)
