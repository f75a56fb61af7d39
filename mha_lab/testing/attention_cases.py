"""The inputs on which attention variants are checked, and how they are called.

A variant is checked where it has a meaning, as its ``refuse`` says: with keys of another sequence,
else within one, else looking back only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mha_lab.testing.running import require

Factory = Callable[..., nn.Module]

# All different, so that no two axes can be swapped unnoticed, and primes but for H: there are
# variants whose heads share keys, and so must have a divisor. E is H times a head of 6.
N, L, S, H = 2, 5, 7, 4
E = 6 * H

LONG = 131
"""A length at which the weights are so many that they may be made in another way."""


@dataclass(frozen=True)
class Case:
    """A module, and a call of it that has a meaning.

    Attributes:
        module: In eval mode.
        keys: How many keys there are: S, or L where they must be those of the queries.
        is_causal: Whether it looks back only, and so is called with a causal mask.
    """

    module: nn.Module
    keys: int
    is_causal: bool

    @property
    def query(self) -> Tensor:
        """(N, L, E)."""
        return torch.randn(N, L, E, generator=torch.Generator().manual_seed(0))

    @property
    def memory(self) -> Tensor:
        """What is key and value: (N, keys, E)."""
        return torch.randn(N, self.keys, E, generator=torch.Generator().manual_seed(1))

    @property
    def padding(self) -> Tensor:
        """(N, keys): the second sample has three keys of padding."""
        mask = torch.zeros(N, self.keys, dtype=torch.bool)
        mask[1, self.keys - 3 :] = True
        return mask

    @property
    def seen(self) -> Tensor:
        """(L, keys): which keys a query may see without any further mask."""
        seen = torch.ones(L, self.keys, dtype=torch.bool)
        return seen.tril() if self.is_causal else seen

    def call(self, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Any:
        """What the module returns, under a causal mask where it must have one."""
        if self.is_causal and options.get("attn_mask") is None:
            mask = torch.ones(query.shape[1], key.shape[1], dtype=torch.bool).triu(1)
            options = {**options, "attn_mask": mask, "is_causal": True}
        return self.module(query, key, value, **options)

    def attend(self, query: Tensor, memory: Tensor, **masks: Any) -> Tensor:
        """The output (N, L, E) alone; the memory is key and value."""
        output: Tensor = self.call(query, memory, memory, need_weights=False, **masks)[0]
        return output

    def weights(self, **options: Any) -> Tensor:
        """The weights of the standard inputs."""
        weights = self.call(self.query, self.memory, self.memory, need_weights=True, **options)[1]
        require(
            isinstance(weights, Tensor), f"need_weights=True must return weights, got {weights!r}"
        )
        return weights  # type: ignore[no-any-return]

    def says(self, name: str, default: bool) -> bool:
        """What the module says of itself."""
        return bool(getattr(self.module, name, default))


def make(factory: Factory, *, dropout: float = 0.0, seed: int = 0, heads: int = H) -> Case:
    """A module whose weights follow from the seed, and where it is called."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = factory(E, heads, dropout=dropout).eval()
    if not is_refused(module, is_causal=False, is_cross=True):
        return Case(module, S, is_causal=False)
    return Case(module, L, is_causal=is_refused(module, is_causal=False, is_cross=False))


def is_refused(module: nn.Module, *, is_causal: bool, is_cross: bool) -> bool:
    """Whether a module says that it has no meaning somewhere."""
    refuse = getattr(module, "refuse", None)
    if refuse is None:
        return False
    try:
        refuse(is_causal=is_causal, is_cross=is_cross)
    except ValueError as refusal:
        require("choose" in str(refusal), f"a refusal must say what to choose: {refusal}")
        return True
    return False


def causal() -> Tensor:
    """(L, L): True above the diagonal."""
    return torch.ones(L, L, dtype=torch.bool).triu(1)
