"""Attention under what an encoding adds to the scores, by the ways of composed attention."""

from jaxtyping import Float
from torch import Tensor

from mha_lab.attention.bias import Bias
from mha_lab.attention.functional import Mask
from mha_lab.attention.mixing.none import NoMixing
from mha_lab.attention.pipeline import Steps, attend_and_show
from mha_lab.attention.weighting.softmax import Softmax
from mha_lab.projected import Heads

_WEIGHTING, _MIXING = Softmax(), NoMixing()


def attend_under_bias(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    v: Float[Tensor, "N H S D"],
    bias: Bias,
    mask: Mask | None,
    is_causal: bool,
    dropout_p: float,
    *,
    need_weights: bool,
) -> tuple[Heads, Heads | None]:
    """The heads' outputs (N, H, L, D), and if they are needed the weights (N, H, L, S).

    Args:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        v: Projected values (N, H, S, D).
        bias: Added to the scores, broadcastable to (N, H, L, S).
        mask: Inside mask, broadcastable to (N, H, L, S), or None.
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
        dropout_p: Probability of dropping a weight.
        need_weights: Whether the weights are wanted.
    """
    steps = Steps(_WEIGHTING, _MIXING, q.shape[-1] ** -0.5, None, q.shape[1], q.shape[1])
    return attend_and_show(
        q, k, v, bias, mask, is_causal, steps, dropout_p, need_weights=need_weights
    )
