"""The parts that attention is composed of: what each is given, and what it may say of itself.

A part is a small module; where it has no state, a function will do. One that a config makes is a
factory, called by keyword with those of ``num_heads`` and ``head_dim`` that its signature names.

- **Weighting**: ``(scores, allowed) -> weights``. Scores (N, H, L, S) are -inf where a query may
  not attend, and no row is -inf throughout. ``allowed``, bool, broadcasts to them, and its last
  two axes are (L, S). What a weighting gives to blocked keys is set to 0 after it.
- **Pattern**: ``(L, S, device) -> allowed``, bool (L, S) or (H, L, S), or None for every pair. The
  queries are the last L of S positions: fewer where earlier ones were computed before (``cache``).
- **Mixing**: ``(weights) -> weights``, from (N, maps_per_head · H, L, S) to (N, H, L, S).

What a part may say, with the default where it says nothing:

- ``refuse(*, is_causal, is_cross)``: raises ValueError for a use that has no meaning, in a sentence
  that says why and what to choose. (Nothing is refused.)
- Weighting: ``rows_sum_to_one`` (True). ``is_softmax`` (False): that adding m to a score multiplies
  its weight by exp(m). ``knows_order`` (False): that it makes a difference where a key stands.
  ``as_softmax(allowed) -> SoftmaxOver``: what it is a
  softmax over; the fused kernel then computes it. (It is none.) ``treats_rows_alike`` (False): that
  each row of weights follows from its row of scores and of ``allowed``, in the same way in every
  head, without parameters, and that a score of -inf gets exactly 0; long calls are then computed
  in blocks of rows, which takes a third of the time and no memory to speak of. If such a one has
  ``find(scores) -> (N, H, L, 1)``, a number of each row that takes long to find, it is called once
  and handed to it as a third argument in both passes.
  ``find_and_weigh(scores) -> (found, weights)``, if there is one, does both in the first pass; it
  and the call with ``found`` may leave the weights where the scores were.
  ``gradient(scores, weights, grad) -> grad_scores``: what autograd would find, by hand, which saves
  blocks a part of their time; it may lie where one of the three did, and ``find``'s number is a
  fourth argument. (Autograd finds it.)
  ``most_keys`` (None): that it is a softmax over so many best scores of a row; what the other keys
  would add is then not computed.
  ``as_rows(opened) -> RowsOver``: such a weighting that it is, of scaled or shifted scores. (None.)
- Mixing: ``maps_per_head`` (1). ``mix_scores(scores) -> scores``: what it does before the
  weighting. ``finish(heads) -> heads``: what it does to the heads' outputs (N, H, L, D).
  ``is_within_heads`` (False): that it only adds up maps of one head, and so may be applied to what
  each map makes of the values. ``factors() -> (maps_per_head - 1,)``: what the maps
  of a head but the first are multiplied by, and then added to it, which blocks do before these meet
  the values. ``matrices() -> (before, after)``: two of (H, H) by which scores and
  weights are multiplied, if that is all it does; then blocks serve it too.
  ``rows_sum_to_one`` (True): that it keeps the sums of rows.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor, nn

Factory = Callable[..., Any]
"""Makes a part, or is one."""


class SoftmaxOver(NamedTuple):
    """What a weighting is a softmax over: ``row_scale · scores``, and one key more.

    Attributes:
        row_scale: Factor of each row of scores, broadcastable to (N, H, L, 1); None means 1.
        extra_score: The score (H,) of one more key whose value is 0; None means no such key.
    """

    row_scale: Tensor | None = None
    extra_score: Tensor | None = None


class RowsOver(NamedTuple):
    """What a weighting does to rows: another one, the same for each head, of scaled scores.

    Attributes:
        weighting: One that treats rows alike.
        scale: Factor of each row of scores, broadcastable to (N, H, L, 1); None means 1.
        shift: What is added to each row, of such a shape; without gradient; None means 0.
    """

    weighting: Any
    scale: Tensor | None = None
    shift: Tensor | None = None


def make_part(factory: Factory, **known: Any) -> Any:
    """Make a part.

    Args:
        factory: A class or a partial of it; what is a part already (a module, a function) is
            returned as it is.
        known: Offered to the factory, which takes what its signature names.
    """
    target = factory.func if isinstance(factory, partial) else factory
    if isinstance(factory, nn.Module) or not inspect.isclass(target):
        return factory
    wanted = inspect.signature(factory).parameters
    return factory(**{name: value for name, value in known.items() if name in wanted})


def ask(part: Any, name: str, default: Any) -> Any:
    """What a part says of itself; a partial of a function says what the function says."""
    part = part.func if isinstance(part, partial) else part
    return getattr(part, name, default)


def refuse(part: Any, *, is_causal: bool, is_cross: bool) -> None:
    """Ask a part whether it has a meaning.

    Raises:
        ValueError: In the part's own sentence.
    """
    says = ask(part, "refuse", None)
    if says is not None:
        says(is_causal=is_causal, is_cross=is_cross)
