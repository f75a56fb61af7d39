"""What attention keeps of the tokens so far, so that decoding computes each token once.

A module whose call takes ``cache`` is called first with a whole prefix, causal, then with one token
at a time. Each call hands over its own keys only; they are added to those kept, and its masks speak
of all of them. All keys lie before the query of a later call, so that needs no causal mask;
``is_causal`` counts from the kept keys on, by which attention with scores takes several tokens at a
time too, while a mechanism with a state takes one. Where keys do not grow, in cross-attention,
later calls hand over none.

Attention with scores keeps keys and values, as ``DynamicCache`` of Hugging Face's transformers
does, turned by their positions already; mechanisms with a state keep that alone.
"""

import inspect

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Cache:
    """What one attention module keeps from call to call.

    Attributes:
        length: how many keys it has been handed.
        state: of a mechanism that has one; None before the first call.
    """

    def __init__(self) -> None:
        self.length = 0
        self.state: Tensor | None = None
        self._kept: dict[str, Tensor] = {}

    def extend(self, **new: Float[Tensor, "... L D"]) -> tuple[Float[Tensor, "... S D"], ...]:
        """Add what belongs to new keys, and give what belongs to all.

        Args:
            new: by name, of any shapes (..., L, D).

        Returns:
            For each name all that was ever added, one after the other.
        """
        start, end = self.length, self.length + next(iter(new.values())).shape[-2]
        self.length = end
        return tuple(self._with(name, x, start, end) for name, x in new.items())

    def carry(self, state: Tensor, keys: int) -> None:
        """Keep a state that has taken in further keys."""
        self.state, self.length = state, self.length + keys

    def _with(self, name: str, x: Tensor, start: int, end: int) -> Tensor:
        room = self._kept.get(name)
        if room is None or room.shape[-2] < end:  # twice as much as needed: copied seldom
            larger = x.new_empty(*x.shape[:-2], end if room is None else 2 * end, x.shape[-1])
            if room is not None:
                larger[..., :start, :] = room[..., :start, :]
            room = self._kept[name] = larger
        room[..., start:end, :] = x
        return room[..., :end, :]


def takes_cache(module: nn.Module) -> bool:
    """Whether an attention module can go on from what a cache holds."""
    return "cache" in inspect.signature(module.forward).parameters


def positions_from(start: int, x: Float[Tensor, "... L D"]) -> Tensor:
    """The positions of L tokens of which the first stands at a place."""
    return torch.arange(start, start + x.shape[-2], device=x.device)
