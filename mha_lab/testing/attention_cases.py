"""The inputs on which attention variants are checked, and how they are called."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mha_lab.testing.running import require

Factory = Callable[..., nn.Module]

# Primes, all different, so that no two axes can be swapped unnoticed; E is H times a head of 4.
N, L, S, H = 2, 5, 7, 3
E = 4 * H


def make(factory: Factory, *, dropout: float = 0.0, seed: int = 0) -> nn.Module:
    """A module in eval mode, whose weights follow from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return factory(E, H, dropout=dropout).eval()


def inputs() -> tuple[Tensor, Tensor]:
    """A query (N, L, E) and a memory (N, S, E)."""
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(N, L, E, generator=generator)
    return query, torch.randn(N, S, E, generator=generator)


def padding() -> Tensor:
    """(N, S): the second sample has three keys of padding."""
    mask = torch.zeros(N, S, dtype=torch.bool)
    mask[1, S - 3 :] = True
    return mask


def causal() -> Tensor:
    """(L, L): True above the diagonal."""
    return torch.ones(L, L, dtype=torch.bool).triu(1)


def attend(module: nn.Module, query: Tensor, memory: Tensor, **masks: Any) -> Tensor:
    """The output (N, L, E) alone; the memory is key and value."""
    output: Tensor = module(query, memory, memory, need_weights=False, **masks)[0]
    return output


def weights_of(module: nn.Module, **options: Any) -> Tensor:
    """The weights of the standard inputs."""
    query, memory = inputs()
    weights = module(query, memory, memory, need_weights=True, **options)[1]
    require(isinstance(weights, Tensor), f"need_weights=True must return weights, got {weights!r}")
    return weights  # type: ignore[no-any-return]
