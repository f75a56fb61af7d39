"""What the harness relies on in encodings that act inside attention."""

import torch

from mha_lab.testing.position_cases import (
    D,
    Factory,
    H,
    Heads,
    L,
    N,
    acts_inside,
    below_diagonal,
    make,
    random,
    scores,
)
from mha_lab.testing.running import Check, require, same


def inside_checks() -> list[Check]:
    """The checks, each a function of the factory; others than such encodings pass."""
    return [
        heads_keep_their_shape_and_dtype,
        a_bias_has_the_shape_of_the_scores,
        it_works_in_both_directions_or_says_why_not,
        a_row_depends_on_its_positions_alone,
        later_tokens_do_not_matter,
        moving_all_positions_changes_nothing_where_relative,
        order_is_told_by_positions,
    ]


def heads_keep_their_shape_and_dtype(factory: Factory) -> None:
    """``rotate`` keeps shape, dtype and length of the vectors, with fewer key heads too."""
    module = make(factory)
    if not hasattr(module, "rotate"):
        return
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        q, k = random(N, H, L, D).to(dtype), random(N, 1, L + 2, D).to(dtype)
        turned = module.to(dtype).rotate(q, k, torch.arange(L), torch.arange(L + 2))
        for name, before, after in zip(("q", "k"), (q, k), turned, strict=True):
            require(
                after.shape == before.shape and after.dtype == dtype,
                f"{name} must stay {dtype} of shape {tuple(before.shape)}, "
                f"got {after.dtype} of shape {tuple(after.shape)}",
            )


def a_bias_has_the_shape_of_the_scores(factory: Factory) -> None:
    """(H, L, S) or (1, L, S) from ``bias``, (N, H, L, S) from ``score_bias``.

    Half precision cannot tell distances of some hundreds apart, so a ``bias`` has more.
    """
    module, heads, places = make(factory), Heads(dtype=torch.bfloat16), torch.arange(L)
    if not acts_inside(module) or hasattr(module, "rotate"):
        return
    bias = scores(module.to(torch.bfloat16), heads, places, places)
    if hasattr(module, "score_bias"):
        fits = bias.shape == (N, H, L, L)
    else:
        fits = bias.shape in ((1, H, L, L), (1, 1, L, L))
        require(bias.dtype in (torch.float32, torch.float64), f"bias is {bias.dtype}: too coarse")
    require(fits, f"the bias must fit scores of shape {(N, H, L, L)}, got {tuple(bias.shape)}")
    require(not bool(bias.isnan().any()), "the bias must not be NaN")
    require(bool((bias < torch.inf).all()), "the bias must not be +inf")


def it_works_in_both_directions_or_says_why_not(factory: Factory) -> None:
    """Without a causal mask it works, or ``refuse`` says in a sentence what to choose."""
    for is_causal in (True, False):
        module = make(factory, is_causal=is_causal)
        if not acts_inside(module):
            continue
        try:
            if hasattr(module, "refuse"):
                module.refuse(is_causal=is_causal, is_cross=False)
        except ValueError as refusal:
            require("choose" in str(refusal), f"a refusal must say what to choose: {refusal}")
            continue
        made = scores(module, Heads(), torch.arange(L), torch.arange(L))
        require(not bool(made.isnan().any()), f"is_causal={is_causal} must give no NaN")


def a_row_depends_on_its_positions_alone(factory: Factory) -> None:
    """One query among many keys, as with a cache, gets the row that it has in the whole."""
    module, heads, places = make(factory), Heads(), torch.arange(L)
    if not acts_inside(module):
        return
    whole = scores(module, heads, places, places)
    short = places[:3]
    same(
        below_diagonal(scores(module, heads.at(short), short, short)),
        below_diagonal(whole[..., :3, :3]),
        "a shorter sequence must start as the longer one does",
    )
    for i in (0, 2, L - 1):
        one = heads.at(places)
        one.q, one.x = heads.q[:, :, i : i + 1], heads.x[:, i : i + 1]
        try:
            row = scores(module, one, places[i : i + 1], places)
        except ValueError as refusal:
            require("must be" in str(refusal), f"a refusal must say the rule: {refusal}")
            return
        same(
            row[..., : i + 1],
            whole[..., i : i + 1, : i + 1],
            "one query with many keys must get the row that it has among all queries",
        )


def later_tokens_do_not_matter(factory: Factory) -> None:
    """What stands after a query changes nothing among the keys up to it."""
    module, places = make(factory), torch.arange(L)
    if not acts_inside(module):
        return
    heads, changed = Heads(), Heads()
    for tensor in (changed.q, changed.k):
        tensor[:, :, 3:] += 1.0
    changed.x[:, 3:] += 1.0
    before, after = (scores(module, h, places, places)[..., :3, :3] for h in (heads, changed))
    same(
        below_diagonal(after),
        below_diagonal(before),
        "later tokens must not change what earlier queries are told of earlier keys",
    )


def moving_all_positions_changes_nothing_where_relative(factory: Factory) -> None:
    """Where it says ``is_relative``, all positions may be moved by one number."""
    module, heads, places = make(factory), Heads(), torch.arange(L)
    if not (acts_inside(module) and getattr(module, "is_relative", False)):
        return
    same(
        scores(module, heads, places + 11, places + 11),
        scores(module, heads, places, places),
        "a relative encoding must not notice that all positions moved by 11",
        atol=1e-4,
    )


def order_is_told_by_positions(factory: Factory) -> None:
    """Tokens in another order, with their positions, give the same scores in that order."""
    module, heads, places = make(factory, is_causal=False), Heads(), torch.arange(L)
    if not acts_inside(module) or not getattr(module, "reads_positions", True):
        return
    order = torch.tensor([3, 0, 4, 2, 1])
    same(
        scores(module, heads.at(order), order, order),
        scores(module, heads, places, places)[..., order, :][..., order],
        "positions alone must tell the order, not where a token lies in the tensor",
    )
