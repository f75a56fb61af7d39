"""What the harness relies on in a positional encoding; see ``mha_lab.positions.interface``.

A factory is called with ``embed_dim``, and with ``num_heads`` and ``is_causal`` where its signature
names them. What the module must do depends on where it acts: on embeddings, on queries and keys, or
on scores; a check that asks for another place passes.
"""

import copy
import pickle

import torch

from mha_lab.positions.interface import place_of
from mha_lab.testing.position_cases import (
    Factory,
    Heads,
    L,
    N,
    acts_inside,
    below_diagonal,
    embeddings,
    make,
    scores,
)
from mha_lab.testing.position_inside import inside_checks
from mha_lab.testing.running import Check, require, run, same

_CALLS = {
    "embeddings": ("forward",),
    "queries and keys": ("rotate",),
    "scores": ("bias", "score_bias"),
}


def check_position(factory: Factory) -> None:
    """Run every check on a positional encoding.

    Args:
        factory: makes the module: its class, or a partial of it.

    Raises:
        AssertionError: naming each check that failed, and why.
    """
    run(position_checks(), factory)


def position_checks() -> list[Check]:
    """The checks, each a function of the factory, to be run one by one."""
    return [
        it_says_where_it_acts,
        shape_and_dtype_are_kept,
        any_length_and_width_will_do,
        positions_do_not_mix,
        positions_are_told_by_number,
        samples_do_not_mix,
        eval_is_deterministic,
        gradients_are_finite_and_reach_everything,
        state_dict_carries_everything,
        copies_agree,
        *inside_checks(),
    ]


def it_says_where_it_acts(factory: Factory) -> None:
    """``acts_on`` is one of the three places, and the call of that place exists."""
    module = make(factory)
    place = place_of(module)
    require(place in _CALLS, f"acts_on must be one of {', '.join(_CALLS)}, got {place!r}")
    calls = _CALLS[place]
    require(
        any(callable(getattr(module, name, None)) for name in calls),
        f"an encoding that acts on {place} must have {' or '.join(calls)}",
    )
    longest = getattr(module, "max_length", None)
    require(
        longest is None or (isinstance(longest, int) and longest >= 1),
        f"max_length must be a whole number from 1 on, or None, got {longest!r}",
    )


def shape_and_dtype_are_kept(factory: Factory) -> None:
    """In float32, float64 and bfloat16, what comes out is as what came in."""
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        module, x = make(factory).to(dtype), embeddings().to(dtype)
        if acts_inside(module):
            continue
        output = module(x)
        require(
            output.shape == x.shape and output.dtype == dtype,
            f"the output must be {dtype} of shape {tuple(x.shape)}, as the embeddings are, "
            f"got {output.dtype} of shape {tuple(output.shape)}",
        )


def any_length_and_width_will_do(factory: Factory) -> None:
    """Lengths 0 and 1, and an odd embed_dim, are as good as others."""
    module = make(factory)
    for length in (0, 1, 3):
        places = torch.arange(length)
        if acts_inside(module):
            made = scores(module, Heads(length), places, places)
            require(made.shape[-2:] == (length, length), f"length {length} must work")
            continue
        for embed_dim in (1, 7, 14):
            output = make(factory, embed_dim)(torch.zeros(N, length, embed_dim))
            require(
                output.shape == (N, length, embed_dim) and bool(output.isfinite().all()),
                f"length {length} and embed_dim {embed_dim} must work",
            )


def positions_do_not_mix(factory: Factory) -> None:
    """A position's output depends on that position's embedding alone: masks must stay true."""
    module, x = make(factory), embeddings()
    if acts_inside(module):
        return
    same(module(x[:, :3]), module(x)[:, :3], "a shorter sequence must start as the longer one does")
    changed = x.clone()
    changed[:, 3] += 1.0
    others = [0, 1, 2, 4]
    same(
        module(changed)[:, others],
        module(x)[:, others],
        "a position's embedding must not change the output at other positions",
    )


def positions_are_told_by_number(factory: Factory) -> None:
    """What an encoding of embeddings adds follows the positions that it is given, if it takes any.

    One that says ``acts_on`` takes them.
    """
    module, x = make(factory), embeddings()
    if acts_inside(module) or not hasattr(module, "acts_on"):
        return
    places, other = torch.arange(L), torch.tensor([3, 0, 4, 2, 1])
    same(module(x, places), module(x), "positions 0 to L - 1 must be what no positions mean")
    same(
        module(x, other) - x,
        (module(x) - x)[:, other],
        "what is added must follow the positions that are given",
    )


def samples_do_not_mix(factory: Factory) -> None:
    """A sample alone gives what it gives in a batch."""
    module, x, heads = make(factory), embeddings(), Heads()
    sentence = "a sample alone must give what it gives in a batch"
    if not acts_inside(module):
        same(module(x[1:]), module(x)[1:], sentence)
        return
    places, alone = torch.arange(L), Heads(0)
    alone.q, alone.k, alone.x = heads.q[1:], heads.k[1:], heads.x[1:]
    same(
        scores(module, alone, places, places), scores(module, heads, places, places)[-1:], sentence
    )


def eval_is_deterministic(factory: Factory) -> None:
    """In eval mode, two calls agree, and what came in is left as it was."""
    module, x, heads = make(factory), embeddings(), Heads()
    places = torch.arange(L)
    if acts_inside(module):
        first, second = (scores(module, heads, places, places) for _ in range(2))
        same(heads.q, Heads().q, "the queries must not be changed in place", atol=0.0)
        same(heads.k, Heads().k, "the keys must not be changed in place", atol=0.0)
    else:
        first, second = module(x), module(x)
    same(second, first, "in eval mode, two calls must agree", atol=0.0)
    same(x, embeddings(), "the embeddings must not be changed in place", atol=0.0)


def gradients_are_finite_and_reach_everything(factory: Factory) -> None:
    """What is turned or added to, and every parameter, gets a finite gradient."""
    module, heads = make(factory).train(), Heads()
    wanted = dict(module.named_parameters())
    if acts_inside(module):
        q, k = heads.q.requires_grad_(), heads.k.requires_grad_()
        if hasattr(module, "rotate"):
            wanted |= {"q": q, "k": k}
        made = scores(module, heads, torch.arange(L), torch.arange(L))
        made = below_diagonal(made).masked_fill(made == -torch.inf, 0.0)
    else:
        wanted["embeddings"] = x = embeddings().requires_grad_()
        made = module(x)
    if wanted:
        torch.autograd.backward(made.square().sum())
    for name, tensor in wanted.items():
        require(tensor.grad is not None, f"{name} must get a gradient")
        require(bool(tensor.grad.isfinite().all()), f"the gradient of {name} must be finite")


def state_dict_carries_everything(factory: Factory) -> None:
    """A second module with the first one's state_dict gives the same output."""
    first, second = make(factory), make(factory, seed=1)
    second.load_state_dict(first.state_dict())
    same(
        _output(second),
        _output(first),
        "a module that loads another one's state_dict must agree with it",
    )


def copies_agree(factory: Factory) -> None:
    """A deep copy and an unpickled one give the same output."""
    module = make(factory)
    for copied in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        same(_output(copied), _output(module), "a copy must agree with what it was made from")


def _output(module: torch.nn.Module) -> torch.Tensor:
    if acts_inside(module):
        return scores(module, Heads(), torch.arange(L), torch.arange(L))
    output: torch.Tensor = module(embeddings())
    return output
