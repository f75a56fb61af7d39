"""Going on from a state that earlier calls have left in a cache."""

from collections.abc import Callable

from torch import Tensor

from mha_lab.attention.cache import Cache
from mha_lab.projected import Heads


def attend_from(
    cache: Cache | None,
    q: Heads,
    k: Heads,
    *,
    whole: Callable[[], Heads],
    after: Callable[[Tensor | None], Tensor],
    read: Callable[[Tensor], Tensor],
) -> Heads:
    """The heads' outputs, and the state with this call's keys kept in the cache.

    Args:
        cache: Holds the state that this call finds; None where nothing is to be kept.
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D) of this call alone.
        whole: Gives the outputs where there are no earlier keys.
        after: From the state before (None: there is none) to that after the keys of this call.
        read: What the queries read from a state.

    Raises:
        ValueError: several tokens at once after the first call.
    """
    if cache is None:
        return whole()
    if cache.state is None:
        cache.carry(after(None), k.shape[2])
        return whole()
    if k.shape[2] > 1:
        raise ValueError(
            f"after its first call a cache takes one token at a time, got {k.shape[2]} keys"
        )
    state = after(cache.state)
    cache.carry(state, k.shape[2])
    return read(state)
