"""What the harness relies on in an attention variant's masks: True blocks, as in torch."""

import torch
from torch import Tensor, nn

from mha_lab.testing.attention_cases import (
    Factory,
    L,
    N,
    S,
    attend,
    causal,
    inputs,
    make,
    padding,
    weights_of,
)
from mha_lab.testing.running import Check, require, same


def mask_checks() -> list[Check]:
    """The checks of masks, each a function of the factory."""
    return [
        padded_keys_do_not_matter,
        padding_of_nothing_changes_nothing,
        true_blocks_in_a_boolean_mask,
        minus_infinity_blocks_in_a_float_mask,
        a_float_mask_is_added_to_the_scores,
        later_positions_do_not_matter_under_a_causal_mask,
        is_causal_agrees_with_its_mask,
        mask_and_padding_both_apply,
    ]


def is_refused(module: nn.Module, mask: Tensor) -> bool:
    """Whether a mechanism says that it takes no such mask: one that has no scores may."""
    query, memory = inputs()
    try:
        attend(module, query, memory, attn_mask=mask)
    except ValueError as refusal:
        require("choose" in str(refusal), f"a refusal must say what to choose: {refusal}")
        return True
    return False


def padded_keys_do_not_matter(factory: Factory) -> None:
    """What stands at padded keys changes nothing, and they get no weight."""
    module = make(factory)
    query, memory = inputs()
    changed = torch.where(padding()[..., None], torch.tensor(100.0), memory)
    outputs = [
        attend(module, query, keys, key_padding_mask=padding()) for keys in (memory, changed)
    ]
    same(outputs[1], outputs[0], "keys where key_padding_mask is True must not change the output")
    weights = weights_of(module, key_padding_mask=padding(), average_attn_weights=True)
    padded = weights.masked_select(padding()[:, None, :])
    same(padded, torch.zeros_like(padded), "keys where key_padding_mask is True must get weight 0")


def padding_of_nothing_changes_nothing(factory: Factory) -> None:
    """A key_padding_mask that is False everywhere is like none."""
    module = make(factory)
    query, memory = inputs()
    nothing = torch.zeros(N, S, dtype=torch.bool)
    same(
        attend(module, query, memory, key_padding_mask=nothing),
        attend(module, query, memory),
        "a key_padding_mask that is False everywhere must change nothing",
    )


def true_blocks_in_a_boolean_mask(factory: Factory) -> None:
    """A key that a (L, S) mask marks with True is not seen by that query, and by others it is."""
    module = make(factory)
    mask = torch.zeros(L, S, dtype=torch.bool)
    mask[1, 2:] = True
    if is_refused(module, mask):
        return
    weights = weights_of(module, attn_mask=mask, average_attn_weights=False)
    blocked = weights[:, :, 1, 2:]
    same(blocked, torch.zeros_like(blocked), "where attn_mask is True, the weight must be 0")
    plain = weights_of(module, average_attn_weights=False)
    same(weights[:, :, 2:], plain[:, :, 2:], "rows of attn_mask without True must change nothing")
    query, memory = inputs()
    changed = memory.clone()
    changed[:, 2:] += 100.0
    outputs = [attend(module, query, keys, attn_mask=mask)[:, 1] for keys in (memory, changed)]
    same(outputs[1], outputs[0], "keys where attn_mask is True must not change the output")


def minus_infinity_blocks_in_a_float_mask(factory: Factory) -> None:
    """A float mask of 0 and -inf is like the boolean one."""
    module = make(factory)
    query, _ = inputs()
    mask = causal()
    floats = torch.zeros(L, L).masked_fill(mask, -torch.inf)
    same(
        attend(module, query, query, attn_mask=floats),
        attend(module, query, query, attn_mask=mask),
        "a float attn_mask with -inf must block as the boolean one with True does",
    )


def a_float_mask_is_added_to_the_scores(factory: Factory) -> None:
    """Adding m to a score multiplies its weight by exp(m), before the row is made to sum to 1."""
    module = make(factory)
    mask = torch.zeros(L, S)
    mask[:, 1], mask[2, 3] = 0.5, -0.7
    if is_refused(module, mask):
        return
    scaled = weights_of(module, average_attn_weights=False) * mask.exp()
    same(
        weights_of(module, attn_mask=mask, average_attn_weights=False),
        scaled / scaled.sum(-1, keepdim=True),
        "a float attn_mask must be added to the scores",
    )


def later_positions_do_not_matter_under_a_causal_mask(factory: Factory) -> None:
    """Under a causal mask, changing one position changes no output before it, and its own."""
    module = make(factory)
    query, _ = inputs()
    changed = query.clone()
    changed[:, 3] += 1.0
    before, after = (attend(module, x, x, attn_mask=causal()) for x in (query, changed))
    same(after[:, :3], before[:, :3], "a later position must not change an earlier output")
    require(
        not torch.equal(after[:, 3], before[:, 3]), "each position must see itself; it sees nothing"
    )


def is_causal_agrees_with_its_mask(factory: Factory) -> None:
    """is_causal=True beside the causal mask only says what the mask says, weights or not."""
    module = make(factory)
    query, _ = inputs()
    plain = attend(module, query, query, attn_mask=causal())
    for need_weights in (False, True):
        hinted = module(
            query, query, query, attn_mask=causal(), is_causal=True, need_weights=need_weights
        )
        same(
            hinted[0],
            plain,
            f"is_causal=True with the causal mask and need_weights={need_weights} must be like the "
            "mask alone",
        )


def mask_and_padding_both_apply(factory: Factory) -> None:
    """With a causal mask and padding, a key that either blocks gets no weight; others do."""
    module = make(factory)
    query, _ = inputs()
    padding = torch.zeros(N, L, dtype=torch.bool)
    padding[1, 3:] = True
    masks = {"attn_mask": causal(), "key_padding_mask": padding}
    weights = module(query, query, query, **masks, average_attn_weights=True)[1]
    is_seen = ~(causal() | padding[:, None, :])
    same((weights > 0).float(), is_seen.float(), "attn_mask and key_padding_mask must both apply")
