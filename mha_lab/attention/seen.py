"""What a call adds to its scores and who may see whom, of masks, pattern and encoding together."""

from typing import NamedTuple

from torch import Tensor, nn

from mha_lab.attention.allowed import restrict
from mha_lab.attention.bias import Bias, told_bias
from mha_lab.attention.functional import Mask
from mha_lab.attention.grouped import join_maps, serve_groups
from mha_lab.attention.multihead.masks import Sizes, merge_masks
from mha_lab.attention.telling import told
from mha_lab.projected import Heads


class WhoSeesWhom(NamedTuple):
    """Read from one call.

    Attributes:
        bias: What the encoding adds to the scores, broadcastable to (N, H, L, S); or None.
        mask: Inside mask, broadcastable to (N, H, L, S), or None.
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
    """

    bias: Bias | None
    mask: Mask | None
    is_causal: bool


def seen(
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    *,
    is_causal: bool,
    sizes: Sizes,
    like: Tensor,
    pattern: Tensor | None,
    bias: Bias | None,
    start: int = 0,
) -> WhoSeesWhom:
    """Let all masks block, and keep apart what is added.

    Args:
        attn_mask: As ``check_masks`` lets it pass.
        key_padding_mask: (N, S), or (S,) unbatched.
        is_causal: Whether query i sees keys 0..i only; holds beside a mask.
        sizes: (N, H, L, S).
        like: A tensor of the call's dtype and device.
        pattern: True where it allows, (L, S) or (H, L, S); None allows all.
        bias: What the encoding adds to the scores, or None.
        start: Where the first query stands among the keys.
    """
    mask, is_causal = merge_masks(
        attn_mask,
        key_padding_mask,
        is_causal=is_causal,
        sizes=sizes,
        like=like,
        earlier_keys=start,
    )
    mask, is_causal = restrict(mask, is_causal, pattern)
    return WhoSeesWhom(bias, mask, is_causal)


def bias_of_maps(
    position: nn.Module | None, q: Heads, k: Heads, x: Tensor, start: int, *, num_heads: int
) -> Bias | None:
    """What an encoding adds to the scores, told of whole heads.

    Args:
        position: An encoding, or None.
        q: Queries, M maps a head: (N, M·H, L, D/M).
        k: Keys (N, M·kv_heads, S, D/M).
        x: The query of the call, (N, L, E) or (L, E), behind those that a cache holds.
        start: Where the first query stands.
        num_heads: H.
    """
    if position is None or hasattr(position, "rotate"):
        return None
    if hasattr(position, "score_bias"):
        maps_per_head = q.shape[1] // num_heads
        q, k = join_maps(q, maps_per_head), join_maps(k, maps_per_head)
        k = serve_groups(k, k.shape[1], num_heads)
    return told_bias(position, told(q, k, x, start))
