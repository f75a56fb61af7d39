"""The masks that a state can take: which keys count, and that no query sees a later key."""

from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from mha_lab.attention.functional import Mask, allowed_where_not
from mha_lab.attention.multihead.masks import Sizes, merge_masks


class Seen(NamedTuple):
    """Who may see what.

    Attributes:
        keys: Which keys count, bool (N or 1, H or 1, S), True = seen; None means all.
        is_causal: Whether query i sees keys 0..i only.
    """

    keys: Bool[Tensor, "#N #H S"] | None
    is_causal: bool


def read_masks(
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    *,
    is_causal: bool,
    sizes: Sizes,
    like: Tensor,
    mechanism: str,
) -> Seen:
    """Read from a call's masks what a state can respect, and refuse the rest.

    Args:
        attn_mask: As ``check_masks`` lets it pass.
        key_padding_mask: (N, S), or (S,) unbatched.
        is_causal: Whether query i sees keys 0..i only; holds beside a mask.
        sizes: (N, H, L, S).
        like: A tensor of the call's dtype and device.
        mechanism: What refuses, for the sentence.

    Raises:
        ValueError: A mask that is neither causal nor of keys alone, or a float one that does more
            than block. (RuntimeError inside ``torch.compile``, where values are not known.)
    """
    keys: Tensor | None = None
    if 0 in sizes:
        return Seen(None, is_causal)
    for name, masks in (
        ("key_padding_mask", (None, key_padding_mask)),
        ("attn_mask", (attn_mask, None)),
    ):
        # One by one: merged, they would have (N, 1, L, S) numbers.
        mask, _ = merge_masks(*masks, is_causal=False, sizes=sizes, like=like)
        if mask is None:
            continue
        allowed = _as_allowed(mask, name, mechanism)
        if allowed.shape[-2] > 1:
            is_triangular = _is_triangular(allowed, name, mechanism, is_causal)
            is_causal = is_causal or is_triangular
        last = allowed[..., -1, :]  # the last query sees all that is not blocked for every query
        last = last[(None,) * (3 - last.ndim)].expand(-1, -1, sizes.S)
        keys = last if keys is None else keys & last
    return Seen(keys, is_causal)


def _as_allowed(mask: Mask, name: str, mechanism: str) -> Bool[Tensor, "..."]:
    """The mask as a boolean one, where it does no more than block."""
    if mask.dtype == torch.bool:
        return mask
    blocked = mask == -torch.inf
    _require(
        (blocked | (mask == 0)).all(),
        f"{mechanism} adds nothing to scores, since it has no softmax: a float {name} may hold 0 "
        "and -inf alone; choose an attention with scores, such as custom, or a position that adds "
        "no bias",
    )
    return allowed_where_not(blocked)


def _is_triangular(
    allowed: Bool[Tensor, "... L S"], name: str, mechanism: str, is_causal: bool
) -> bool:
    """Whether no query sees a later key; every query must see the same keys otherwise."""
    causal = torch.ones(allowed.shape[-2:], dtype=torch.bool, device=allowed.device).tril()
    last = allowed[..., -1:, :]
    sentence = (
        f"{mechanism} keeps one state for all queries, so {name} must be causal or the same for "
        "every query; choose an attention with scores, such as custom, for other masks, of which "
        "position=hard_alibi is one"
    )
    if torch.compiler.is_compiling():  # a graph cannot branch on values: only the causal one
        _require((allowed == last & causal).all(), sentence)
        return True
    # With is_causal, what lies above the diagonal does not matter.
    looked_at = causal if is_causal else torch.ones_like(causal)
    if bool((allowed & looked_at == last & causal).all()):
        return True
    _require((allowed == last).all(), sentence)
    return False


def _require(condition: Tensor, sentence: str) -> None:
    if torch.compiler.is_compiling():
        torch._assert_async(condition, sentence)
    elif not condition:
        raise ValueError(sentence)
