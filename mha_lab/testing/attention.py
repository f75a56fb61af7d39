"""What the harness relies on in an attention variant: torch's own call, batch first.

A factory is called as ``factory(embed_dim, num_heads, dropout=0.0)`` and makes an ``nn.Module``
whose forward is ``(query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
average_attn_weights=..., is_causal=False) -> (output, weights | None)``: that of
``torch.nn.MultiheadAttention``. A boolean mask blocks where it is True.
"""

import torch

from mha_lab.testing.attention_cases import (
    Factory,
    H,
    L,
    N,
    S,
    attend,
    inputs,
    make,
    padding,
    weights_of,
)
from mha_lab.testing.attention_masks import mask_checks
from mha_lab.testing.running import Check, require, run, same


def check_attention(factory: Factory) -> None:
    """Run every check on a variant.

    Args:
        factory: makes the module: its class, or a partial of it.

    Raises:
        AssertionError: naming each check that failed, and why.
    """
    run(attention_checks(), factory)


def attention_checks() -> list[Check]:
    """The checks, each a function of the factory, to be run one by one."""
    return [
        output_has_the_shape_of_the_query,
        weights_have_the_shape_asked_for,
        weights_are_distributions,
        need_weights_keeps_the_output,
        samples_do_not_mix,
        eval_is_deterministic,
        gradients_are_finite_and_reach_everything,
        state_dict_carries_everything,
        *mask_checks(),
    ]


def output_has_the_shape_of_the_query(factory: Factory) -> None:
    """(N, L, E) from a query (N, L, E) and keys (N, S, E), in their dtype."""
    query, memory = inputs()
    module = make(factory)
    output = attend(module, query, memory)
    require(
        output.shape == query.shape,
        f"output must have the query's shape {tuple(query.shape)}, got {tuple(output.shape)}",
    )
    double = attend(module.double(), query.double(), memory.double())
    require(double.dtype == torch.float64, f"a float64 module must return it, got {double.dtype}")


def weights_have_the_shape_asked_for(factory: Factory) -> None:
    """(N, L, S) averaged over heads, (N, H, L, S) not averaged, None where not needed."""
    module = make(factory)
    for average, shape in ((True, (N, L, S)), (False, (N, H, L, S))):
        weights = weights_of(module, average_attn_weights=average)
        require(
            weights.shape == shape,
            f"with average_attn_weights={average} the weights must have shape {shape}, "
            f"got {tuple(weights.shape)}",
        )
    query, memory = inputs()
    unneeded = module(query, memory, memory, need_weights=False)[1]
    require(unneeded is None, "with need_weights=False the weights must be None")
    same(
        weights_of(module, average_attn_weights=True),
        weights_of(module, average_attn_weights=False).mean(1),
        "averaged weights must be the mean over the heads",
    )


def weights_are_distributions(factory: Factory) -> None:
    """Each row of weights is at least 0 and sums to 1."""
    weights = weights_of(make(factory), average_attn_weights=False)
    require(bool((weights >= 0).all()), f"weights must not be negative, got {weights.min():.3g}")
    same(weights.sum(-1), torch.ones(N, H, L), "each row of weights must sum to 1")


def need_weights_keeps_the_output(factory: Factory) -> None:
    """Asking for weights changes the output by rounding at most."""
    module = make(factory)
    query, memory = inputs()
    with_weights = module(query, memory, memory, need_weights=True)[0]
    same(attend(module, query, memory), with_weights, "need_weights must not change the output")


def samples_do_not_mix(factory: Factory) -> None:
    """A sample alone gives what it gives in a batch: the batch comes first."""
    module = make(factory)
    query, memory = inputs()
    together = attend(module, query, memory, key_padding_mask=padding())
    for i in range(N):
        part = slice(i, i + 1)
        alone = attend(module, query[part], memory[part], key_padding_mask=padding()[part])
        same(alone, together[part], f"sample {i} alone must give what it gives in a batch")


def eval_is_deterministic(factory: Factory) -> None:
    """In eval mode nothing is dropped."""
    query, memory = inputs()
    module = make(factory, dropout=0.5)
    outputs = [attend(module, query, memory) for _ in range(2)]
    same(outputs[1], outputs[0], "with dropout=0.5 in eval mode, two calls must agree", atol=0.0)
    plain = make(factory, dropout=0.0)
    plain.load_state_dict(module.state_dict())
    same(attend(plain, query, memory), outputs[0], "in eval mode, dropout must change nothing")


def gradients_are_finite_and_reach_everything(factory: Factory) -> None:
    """Query, key, value and every parameter get a finite gradient, masks on, in training."""
    module = make(factory).train()
    query, key = (x.requires_grad_() for x in inputs())
    value = inputs()[1].requires_grad_()
    output = module(query, key, value, key_padding_mask=padding(), need_weights=False)[0]
    output.square().sum().backward()
    given = {"query": query, "key": key, "value": value}
    for name, tensor in {**given, **dict(module.named_parameters())}.items():
        require(tensor.grad is not None, f"{name} must get a gradient")
        require(bool(tensor.grad.isfinite().all()), f"the gradient of {name} must be finite")  # type: ignore[union-attr]
    for name, tensor in given.items():
        require(bool(tensor.grad.any()), f"the gradient of {name} must not be 0 everywhere")  # type: ignore[union-attr]


def state_dict_carries_everything(factory: Factory) -> None:
    """A second module with the first one's state_dict gives the same output."""
    query, memory = inputs()
    first, second = make(factory), make(factory, seed=1)
    second.load_state_dict(first.state_dict())
    same(
        attend(second, query, memory),
        attend(first, query, memory),
        "a module that loads another one's state_dict must give the same output",
    )
