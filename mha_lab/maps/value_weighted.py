"""Value-weighted attention [1]_: what a key gives, not only how much a query looks at it.

A head's output is a weighted sum of values, so a key whose value is near 0 adds nothing, whatever
weight it gets; that is where heads "park" attention, on separators and on the first token. The
map of w·‖v‖ shows the lengths of the vectors that are added up.

The paper's ``v`` is the value after the output projection of its head. The recorder sees the value
before it, which every attention call has; the two agree where that projection keeps lengths.

.. [1] Kobayashi et al., "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms",
   2020, section 2. https://arxiv.org/abs/2004.10102
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor


def value_weighted(
    weights: Float[Tensor, "N H L S"], value_norms: Float[Tensor, "N H S"]
) -> Float[Tensor, "N H L S"]:
    """Multiply each weight by the norm of the value that it is applied to.

    Args:
        weights: (N, H, L, S).
        value_norms: ‖v‖ of each head's keys (N, H, S).

    Returns:
        (N, H, L, S). Rows no longer sum to 1.

    Raises:
        ValueError: If the norms are not those of the map's keys.
    """
    n, h, _, source = weights.shape
    if value_norms.shape != (n, h, source):
        raise ValueError(
            f"value_norms have shape {tuple(value_norms.shape)}; "
            f"weights {tuple(weights.shape)} need {(n, h, source)}"
        )
    return weights * value_norms.to(weights)[:, :, None, :]
