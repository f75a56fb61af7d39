"""What the harness relies on in a positional encoding.

A factory is called as ``factory(embed_dim)`` and makes an ``nn.Module`` that maps embeddings
(N, L, E) to the same shape.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from mha_lab.testing.running import Check, require, run, same

Factory = Callable[..., nn.Module]

N, L, E = 2, 5, 14


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
        shape_and_dtype_are_kept,
        any_length_and_width_will_do,
        positions_do_not_mix,
        samples_do_not_mix,
        eval_is_deterministic,
        gradients_are_finite_and_reach_everything,
        state_dict_carries_everything,
    ]


def shape_and_dtype_are_kept(factory: Factory) -> None:
    """(N, L, E) in, (N, L, E) out, in float32, float64 and bfloat16."""
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = _embeddings().to(dtype)
        output = _make(factory).to(dtype)(x)
        require(
            output.shape == x.shape and output.dtype == dtype,
            f"the output must be {dtype} of shape {tuple(x.shape)}, as the embeddings are, "
            f"got {output.dtype} of shape {tuple(output.shape)}",
        )


def any_length_and_width_will_do(factory: Factory) -> None:
    """Lengths 0 and 1, and an odd embed_dim, are as good as others."""
    for embed_dim in (1, 7, 14):
        for length in (0, 1, 3):
            output = _make(factory, embed_dim)(torch.zeros(N, length, embed_dim))
            require(
                output.shape == (N, length, embed_dim) and bool(output.isfinite().all()),
                f"length {length} and embed_dim {embed_dim} must work",
            )


def positions_do_not_mix(factory: Factory) -> None:
    """A position's output depends on that position's embedding alone: masks must stay true."""
    module, x = _make(factory), _embeddings()
    same(module(x[:, :3]), module(x)[:, :3], "a shorter sequence must start as the longer one does")
    changed = x.clone()
    changed[:, 3] += 1.0
    others = [0, 1, 2, 4]
    same(
        module(changed)[:, others],
        module(x)[:, others],
        "a position's embedding must not change the output at other positions",
    )


def samples_do_not_mix(factory: Factory) -> None:
    """A sample alone gives what it gives in a batch."""
    module, x = _make(factory), _embeddings()
    same(module(x[1:]), module(x)[1:], "a sample alone must give what it gives in a batch")


def eval_is_deterministic(factory: Factory) -> None:
    """In eval mode, two calls agree, and the embeddings that came in are left as they were."""
    module, x = _make(factory), _embeddings()
    same(module(x), module(x), "in eval mode, two calls must agree", atol=0.0)
    same(x, _embeddings(), "the embeddings must not be changed in place", atol=0.0)


def gradients_are_finite_and_reach_everything(factory: Factory) -> None:
    """The embeddings and every parameter get a finite gradient."""
    module, x = _make(factory).train(), _embeddings().requires_grad_()
    module(x).square().sum().backward()
    for name, tensor in {"embeddings": x, **dict(module.named_parameters())}.items():
        require(tensor.grad is not None, f"{name} must get a gradient")
        require(bool(tensor.grad.isfinite().all()), f"the gradient of {name} must be finite")  # type: ignore[union-attr]


def state_dict_carries_everything(factory: Factory) -> None:
    """A second module with the first one's state_dict gives the same output."""
    first, second, x = _make(factory), _make(factory, seed=1), _embeddings()
    second.load_state_dict(first.state_dict())
    same(second(x), first(x), "a module that loads another one's state_dict must agree with it")


def _make(factory: Factory, embed_dim: int = E, *, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return factory(embed_dim).eval()


def _embeddings() -> Tensor:
    return torch.randn(N, L, E, generator=torch.Generator().manual_seed(0))
