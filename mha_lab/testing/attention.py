"""What the harness relies on in an attention variant: torch's own call, batch first.

A factory is called as ``factory(embed_dim, num_heads, dropout=0.0)`` and makes an ``nn.Module``
whose forward is ``(query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
average_attn_weights=..., is_causal=False) -> (output, weights | None)``: that of
``torch.nn.MultiheadAttention``. A boolean mask blocks where it is True.

What a module may say of itself, with the default where it says nothing:

- ``refuse(*, is_causal, is_cross)``: raises ValueError for a use that has no meaning.
- ``rows_sum_to_one`` (True): each row of weights is a distribution.
- ``is_softmax`` (True): adding m to a score multiplies its weight by exp(m) before rows are summed.
- ``knows_order`` (False): without any encoding it makes a difference where a key stands.
"""

import torch

from mha_lab.testing.attention_cases import Case, Factory, H, L, N, make
from mha_lab.testing.attention_masks import mask_checks
from mha_lab.testing.attention_modes import compiling_keeps_the_output, mode_checks
from mha_lab.testing.running import Check, require, run, same


def check_attention(factory: Factory) -> None:
    """Run every check on a variant.

    Args:
        factory: makes the module: its class, or a partial of it.

    Raises:
        AssertionError: naming each check that failed, and why.
    """
    run(attention_checks(), factory)


def attention_checks(*, slow: bool = False) -> list[Check]:
    """The checks, each a function of the factory, to be run one by one.

    Args:
        slow: those that take seconds each (``torch.compile``) instead.
    """
    if slow:
        return [compiling_keeps_the_output]
    return [
        output_has_the_shape_of_the_query,
        weights_have_the_shape_asked_for,
        weights_are_distributions,
        weights_are_those_applied,
        samples_do_not_mix,
        order_does_not_matter,
        gradients_are_finite_and_reach_everything,
        state_dict_carries_everything,
        *mode_checks(),
        *mask_checks(),
    ]


def output_has_the_shape_of_the_query(factory: Factory) -> None:
    """(N, L, E) from a query (N, L, E) and keys (N, S, E), in their dtype."""
    case = make(factory)
    output = case.attend(case.query, case.memory)
    require(
        output.shape == case.query.shape,
        f"output must have the query's shape {tuple(case.query.shape)}, got {tuple(output.shape)}",
    )
    case.module.double()
    double = case.attend(case.query.double(), case.memory.double())
    require(double.dtype == torch.float64, f"a float64 module must return it, got {double.dtype}")


def weights_have_the_shape_asked_for(factory: Factory) -> None:
    """(N, L, S) averaged over heads, (N, H, L, S) not averaged, None where not needed."""
    case = make(factory)
    keys = case.keys
    for average, shape in ((True, (N, L, keys)), (False, (N, H, L, keys))):
        weights = case.weights(average_attn_weights=average)
        require(
            weights.shape == shape,
            f"with average_attn_weights={average} the weights must have shape {shape}, "
            f"got {tuple(weights.shape)}",
        )
    unneeded = case.call(case.query, case.memory, case.memory, need_weights=False)[1]
    require(unneeded is None, "with need_weights=False the weights must be None")
    same(
        case.weights(average_attn_weights=True),
        case.weights(average_attn_weights=False).mean(1),
        "averaged weights must be the mean over the heads",
    )


def weights_are_distributions(factory: Factory) -> None:
    """Each row of weights is at least 0 and sums to 1, unless the module says otherwise."""
    case = make(factory)
    weights = case.weights(average_attn_weights=False)
    require(bool(weights.isfinite().all()), "weights must be finite")
    if not case.says("rows_sum_to_one", True):
        return
    require(bool((weights >= 0).all()), f"weights must not be negative, got {weights.min():.3g}")
    same(weights.sum(-1), torch.ones(N, H, L), "each row of weights must sum to 1")


def weights_are_those_applied(factory: Factory) -> None:
    """What a value adds to an output is in proportion to the weight of its key.

    With one head, and a module whose output is linear in the values (without a norm behind).
    """
    try:
        case = make(factory, heads=1)
    except ValueError:  # a module that needs several heads
        return
    query, key, value = case.query, case.memory, case.memory.flip(-1)
    weights = case.call(query, key, value, need_weights=True, average_attn_weights=True)[1]

    def output(value: torch.Tensor) -> torch.Tensor:
        attended: torch.Tensor = case.call(query, key, value, need_weights=False)[0]
        return attended

    plain, zero = output(value), output(torch.zeros_like(value))
    if not torch.allclose(output(2 * value), 2 * plain - zero, atol=1e-4):
        return

    def added(j: int) -> torch.Tensor:
        raised = value.clone()
        raised[:, j] += 1.0
        return output(raised) - plain

    first = added(0)
    for j in range(1, case.keys):
        same(
            added(j) * weights[:, :, :1],
            first * weights[:, :, j : j + 1],
            f"what the values of keys 0 and {j} add to the output must be in proportion to the "
            "weights returned",
        )


def samples_do_not_mix(factory: Factory) -> None:
    """A sample alone gives what it gives in a batch: the batch comes first."""
    case = make(factory)
    query, memory, padding = case.query, case.memory, case.padding
    together = case.attend(query, memory, key_padding_mask=padding)
    for i in range(N):
        part = slice(i, i + 1)
        alone = case.attend(query[part], memory[part], key_padding_mask=padding[part])
        same(alone, together[part], f"sample {i} alone must give what it gives in a batch")


def order_does_not_matter(factory: Factory) -> None:
    """Without an encoding, keys may change places, unless the module says that it knows order."""
    case = make(factory)
    if case.is_causal or case.says("knows_order", False):
        return
    order = torch.randperm(case.keys, generator=torch.Generator().manual_seed(0))
    padding = case.padding
    same(
        case.attend(case.query, case.memory[:, order], key_padding_mask=padding[:, order]),
        case.attend(case.query, case.memory, key_padding_mask=padding),
        "keys that change places must not change the output",
    )


def gradients_are_finite_and_reach_everything(factory: Factory) -> None:
    """Query, key, value and every parameter get a finite gradient, masks on, in training."""
    case = make(factory)
    case.module.train()
    query, key, value = (x.requires_grad_() for x in (case.query, case.memory, case.memory))
    output = case.call(query, key, value, key_padding_mask=case.padding, need_weights=False)[0]
    output.square().sum().backward()
    given = {"query": query, "key": key, "value": value}
    for name, tensor in {**given, **dict(case.module.named_parameters())}.items():
        require(tensor.grad is not None, f"{name} must get a gradient")
        require(bool(tensor.grad.isfinite().all()), f"the gradient of {name} must be finite")  # type: ignore[union-attr]
    for name, tensor in given.items():
        require(bool(tensor.grad.any()), f"the gradient of {name} must not be 0 everywhere")  # type: ignore[union-attr]


def state_dict_carries_everything(factory: Factory) -> None:
    """A second module with the first one's state_dict gives the same output."""
    first, second = make(factory), make(factory, seed=1)
    second.module.load_state_dict(first.module.state_dict())
    same(
        second.attend(second.query, second.memory),
        first.attend(first.query, first.memory),
        "a module that loads another one's state_dict must give the same output",
    )


__all__ = ["Case", "attention_checks", "check_attention"]
