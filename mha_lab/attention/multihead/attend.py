"""The heads' outputs by torch's kernel, and the weights beside them if they are wanted."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mha_lab.attention.bias import Bias
from mha_lab.attention.functional import Mask
from mha_lab.attention.multihead.learned_mask import attend_under, is_learned
from mha_lab.attention.multihead.masks import open_blocked_rows
from mha_lab.attention.multihead.padding import attend_without_padding, is_worth_cutting
from mha_lab.attention.multihead.together import attend_with_weights, is_faster_together
from mha_lab.attention.multihead.under_bias import attend_under_bias
from mha_lab.attention.multihead.weights import weights_apart
from mha_lab.projected import Heads

# torch 2.6 does not tell an export from a compilation.
_is_exporting = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)


def attend(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    v: Float[Tensor, "N H S D"],
    mask: Mask | None,
    *,
    is_causal: bool,
    dropout_p: float,
    need_weights: bool,
    average: bool,
    bias: Bias | None = None,
) -> tuple[Float[Tensor, "N H L D"], Tensor | None]:
    """Attend by the way that is fastest for what is wanted.

    Args:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        v: Projected values (N, H, S, D).
        mask: Inside mask, broadcastable to (N, H, L, S), or None.
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
        dropout_p: Probability of dropping a weight.
        need_weights: Whether the weights are wanted.
        average: Whether they are the mean over the heads.
        bias: What an encoding adds to the scores, or None.

    Returns:
        The outputs, and the weights before dropout, (N, H, L, S), averaged (N, L, S), or None.
    """
    if bias is not None:
        attended, weights = attend_under_bias(
            q, k, v, bias, mask, is_causal, dropout_p, need_weights=need_weights
        )
        return attended, weights.mean(1) if weights is not None and average else weights
    if need_weights and dropout_p == 0 and is_faster_together(q, k, v, mask):
        return attend_with_weights(q, k, v, mask, is_causal, average)
    attended = _attend(q, k, v, mask, dropout_p, is_causal)
    if not need_weights:
        return attended, None
    return attended, weights_apart(q, k, mask, is_causal=is_causal, average=average)


def _attend(
    q: Heads, k: Heads, v: Heads, mask: Mask | None, dropout_p: float, is_causal: bool
) -> Heads:
    """Torch's kernel, which gives 0 where a row sees no key; exported, it must be told to."""
    if mask is not None and dropout_p == 0 and is_learned(q, k, v, mask):
        attended: Tensor = attend_under(q, k, v, mask)
        return attended
    if mask is not None and dropout_p == 0 and is_worth_cutting(q, k, mask):
        return attend_without_padding(q, k, v, mask)
    if mask is None or not _is_exporting():
        return F.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    mask, blocked = open_blocked_rows(mask)  # ONNX writes the kernel out, with NaN for such rows
    attended = F.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    return attended.masked_fill(blocked, 0.0)
