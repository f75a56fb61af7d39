"""What the harness relies on in an attention variant's masks: True blocks, as in torch."""

import torch
from torch import Tensor, nn

from mha_lab.testing.attention_cases import Case, Factory, L, N, causal, is_refused, make
from mha_lab.testing.running import Check, require, same


def mask_checks() -> list[Check]:
    """The checks of masks, each a function of the factory."""
    return [
        padded_keys_do_not_matter,
        padding_is_as_if_cut_off,
        padding_of_nothing_changes_nothing,
        true_blocks_in_a_boolean_mask,
        a_query_that_sees_nothing_gets_nothing,
        minus_infinity_blocks_in_a_float_mask,
        a_float_mask_is_added_to_the_scores,
        later_positions_do_not_matter_under_a_causal_mask,
        is_causal_agrees_with_its_mask,
        mask_and_padding_both_apply,
    ]


def _takes(case: Case, mask: Tensor) -> bool:
    """Whether a mechanism takes such a mask; one that has no scores may refuse it."""
    try:
        case.attend(case.query, case.memory, attn_mask=mask)
    except ValueError as refusal:
        require("choose" in str(refusal), f"a refusal must say what to choose: {refusal}")
        return False
    return True


def padded_keys_do_not_matter(factory: Factory) -> None:
    """What stands at padded keys changes nothing, and they get no weight."""
    case = make(factory)
    padding = case.padding
    changed = torch.where(padding[..., None], torch.tensor(100.0), case.memory)
    outputs = [
        case.attend(case.query, keys, key_padding_mask=padding) for keys in (case.memory, changed)
    ]
    same(outputs[1], outputs[0], "keys where key_padding_mask is True must not change the output")
    weights = case.weights(key_padding_mask=padding, average_attn_weights=True)
    padded = weights.masked_select(padding[:, None, :])
    require(not padded.any(), "keys where key_padding_mask is True must get weight 0, exactly")


def padding_is_as_if_cut_off(factory: Factory) -> None:
    """A padded sample gives what it gives without its padding, whatever depends on lengths."""
    case = make(factory)
    padded = case.attend(case.query, case.memory, key_padding_mask=case.padding)[1:]
    query, memory = case.query[1:], case.memory[1:, : case.keys - 3]
    if not is_refused(case.module, is_causal=case.is_causal, is_cross=True):
        same(case.attend(query, memory), padded, "padding must be as if it were cut off")
        return
    query, padded = query[:, : case.keys - 3], padded[:, : case.keys - 3]
    same(case.attend(query, memory), padded, "padding must be as if it were cut off")


def padding_of_nothing_changes_nothing(factory: Factory) -> None:
    """A key_padding_mask that is False everywhere is like none."""
    case = make(factory)
    nothing = torch.zeros(N, case.keys, dtype=torch.bool)
    same(
        case.attend(case.query, case.memory, key_padding_mask=nothing),
        case.attend(case.query, case.memory),
        "a key_padding_mask that is False everywhere must change nothing",
    )


def true_blocks_in_a_boolean_mask(factory: Factory) -> None:
    """A key that a (L, S) mask marks with True is not seen by that query, and by others it is."""
    case = make(factory)
    mask = case.seen.logical_not()
    mask[1, 2:] = True
    if not _takes(case, mask):
        return
    weights = case.weights(attn_mask=mask, average_attn_weights=False)
    blocked = weights[:, :, 1, 2:]
    require(not blocked.any(), "where attn_mask is True, the weight must be 0, exactly")
    plain = case.weights(average_attn_weights=False)
    same(weights[:, :, 2:], plain[:, :, 2:], "rows of attn_mask without True must change nothing")
    changed = case.memory
    changed[:, 2:] += 100.0
    outputs = [
        case.attend(case.query, keys, attn_mask=mask)[:, 1] for keys in (case.memory, changed)
    ]
    same(outputs[1], outputs[0], "keys where attn_mask is True must not change the output")


def a_query_that_sees_nothing_gets_nothing(factory: Factory) -> None:
    """Where every key is blocked, weights are 0, and the output says nothing of keys or query."""
    case = make(factory)
    if type(case.module) is nn.MultiheadAttention:
        return  # torch's own gives NaN there, or not, depending on the path that it takes
    padding = case.padding
    padding[1] = True
    masks = {"key_padding_mask": padding}
    for need_weights in (True, False):
        output, weights = case.call(
            case.query, case.memory, case.memory, need_weights=need_weights, **masks
        )
        out_proj = getattr(case.module, "out_proj", None)
        nothing = output[1, :1] if out_proj is None else out_proj.bias
        same(
            output[1],
            nothing.expand(L, -1),
            "where every key is blocked, the output must be out_proj.bias",
        )
        if weights is not None:
            require(not weights[1].any(), "where every key is blocked, the weights must be 0")
    output.sum().backward()
    for name, parameter in case.module.named_parameters():
        is_finite = parameter.grad is None or bool(parameter.grad.isfinite().all())
        require(is_finite, f"where every key is blocked, the gradient of {name} must be finite")


def minus_infinity_blocks_in_a_float_mask(factory: Factory) -> None:
    """A float mask of 0 and -inf is like the boolean one."""
    case = make(factory)
    if is_refused(case.module, is_causal=True, is_cross=False):
        return
    floats = torch.zeros(L, L).masked_fill(causal(), -torch.inf)
    same(
        case.attend(case.query, case.query, attn_mask=floats),
        case.attend(case.query, case.query, attn_mask=causal()),
        "a float attn_mask with -inf must block as the boolean one with True does",
    )


def a_float_mask_is_added_to_the_scores(factory: Factory) -> None:
    """Adding m to a score multiplies its weight by exp(m), before the row is made to sum.

    Of a row that does not sum to 1, the rest goes to what is no key, and stays as it is. Where the
    module is no softmax, what is added must still not lower a weight, nor change another row.
    """
    case = make(factory)
    mask = torch.zeros(L, case.keys).masked_fill(case.seen.logical_not(), -torch.inf)
    mask[1:, 1] += 0.5
    if not _takes(case, mask):
        return
    plain = case.weights(average_attn_weights=False)
    weights = case.weights(attn_mask=mask, average_attn_weights=False)
    if case.says("is_softmax", True):
        scaled = plain * mask.exp()
        rest = 1 - plain.sum(-1, keepdim=True)
        expected = scaled / (scaled.sum(-1, keepdim=True) + rest)
        same(weights, expected, "a float attn_mask must be added to the scores")
        return
    same(weights[:, :, 0], plain[:, :, 0], "a float attn_mask must not change a row where it is 0")
    if case.says("rows_sum_to_one", True):
        risen = weights[:, :, 1:, 1] - plain[:, :, 1:, 1]
        require(bool((risen >= -1e-6).all()), "a higher score must not get less weight")
    require(not torch.equal(weights, plain), "a float attn_mask must be added to the scores")


def later_positions_do_not_matter_under_a_causal_mask(factory: Factory) -> None:
    """Under a causal mask, changing one position changes no output before it, and its own."""
    case = make(factory)
    if is_refused(case.module, is_causal=True, is_cross=False):
        return
    query = case.query
    changed = case.query
    changed[:, 3] += 1.0
    before, after = (case.attend(x, x, attn_mask=causal()) for x in (query, changed))
    same(after[:, :3], before[:, :3], "a later position must not change an earlier output")
    require(
        not torch.equal(after[:, 3], before[:, 3]), "each position must see itself; it sees nothing"
    )


def is_causal_agrees_with_its_mask(factory: Factory) -> None:
    """is_causal=True beside the causal mask only says what the mask says, weights or not."""
    case = make(factory)
    if is_refused(case.module, is_causal=True, is_cross=False):
        return
    query = case.query
    plain = case.attend(query, query, attn_mask=causal())
    for need_weights in (False, True):
        hinted = case.module(
            query, query, query, attn_mask=causal(), is_causal=True, need_weights=need_weights
        )
        same(
            hinted[0],
            plain,
            f"is_causal=True with the causal mask and need_weights={need_weights} must be like the "
            "mask alone",
        )


def mask_and_padding_both_apply(factory: Factory) -> None:
    """With a causal mask and padding, a key that either blocks gets no weight; others may."""
    case = make(factory)
    if is_refused(case.module, is_causal=True, is_cross=False):
        return
    query = case.query
    padding = torch.zeros(N, L, dtype=torch.bool)
    padding[1, 3:] = True
    masks = {"attn_mask": causal(), "key_padding_mask": padding}
    weights = case.module(query, query, query, **masks, average_attn_weights=True)[1]
    is_seen = ~(causal() | padding[:, None, :])
    require(
        not weights[~is_seen].any(),
        "attn_mask and key_padding_mask must both apply: what either blocks has a weight",
    )
    own = weights.diagonal(dim1=1, dim2=2)[:, :3]
    require(bool((own != 0).all()), "attn_mask and key_padding_mask must block nothing else")
