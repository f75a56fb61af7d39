"""What an encoding says of itself, and how it is made and asked.

An encoding acts in one of three places, and says so by ``acts_on``:

- ``"embeddings"``: ``forward(embeddings, positions=None)`` adds to them, (N, L, E). An encoding
  that says nothing acts here, and need not take positions.
- ``"queries and keys"``: ``rotate(q, k, q_positions, k_positions) -> (q, k)`` turns projected heads
  q (N, H, L, D) and k (N, Hk, S, D), where Hk may be less than H.
  ``rotate_projected(projected, positions)``, if there is one, does so where q, k and v of one
  sequence still lie side by side, in their place, and returns the three, or None where it cannot
  (see :mod:`mha_lab.projected`).
- ``"scores"``: ``bias(q_positions, k_positions)`` -> (H, L, S) or (1, L, S), in at least float32,
  is added to the scaled scores before the softmax. It joins the float mask where an attention
  module knows nothing of positions. ``diagonals``, if there is one, takes the same and returns
  (H, L + S - 1) numbers, that of query i and key j at j - i + L - 1, or None where they would not
  do; (H, L, S) numbers are then made only where a kernel needs them.
  What reads the content instead has
  ``score_bias(q, k, x, q_positions, k_positions)`` -> (N, H, L, S): q and k as projected (q not
  scaled; k repeated to H heads), x (N, L, E) the query that the attention was called with, and
  before it, where keys come from a cache, those of the calls before.
  ``in_blocks(*what score_bias takes, scale)``, if there is one, returns what adds the same block by
  block, so that no (N, H, L, S) numbers are kept: a ``BlockBias`` of
  :mod:`mha_lab.attention.blockwise.bias`, or None where it cannot.

``forward`` of these two is not called. Positions are whole numbers, (L,) and (S,), with 0 for the
first; they need not be 0, 1, 2, ...: a cache goes on in the middle, and ``randomized`` draws them.

Further things that an encoding may say, each with the default that holds where it says nothing:

- ``is_shared`` (True): one for all layers of a stack, or, False, one a layer, as its source has it.
- ``is_relative`` (False): whether moving all positions by one number changes nothing.
- ``reads_positions`` (True): whether it reads positions at all, or the content and order alone.
- ``blocks`` (False): whether its bias holds -inf, so that attention counts those keys as blocked.
- ``max_length`` (None): the longest sequence that it can encode, where there is one.
- ``refuse(*, is_causal, is_cross)``: raises ValueError, with a sentence that says why and what to
  choose, for a use that has no meaning.

A factory is called with ``embed_dim``, and by keyword with those of ``num_heads`` and ``is_causal``
(whether every query sees earlier keys only) that its signature names.
"""

import inspect
from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

Place = Literal["embeddings", "queries and keys", "scores"]

Positions = Int[Tensor, "L"]
"""Where each query or key stands."""


@runtime_checkable
class Rotation(Protocol):
    """An encoding that turns queries and keys."""

    def rotate(
        self,
        q: Float[Tensor, "N H L D"],
        k: Float[Tensor, "N Hk S D"],
        q_positions: Int[Tensor, "L"],
        k_positions: Int[Tensor, "S"],
    ) -> tuple[Float[Tensor, "N H L D"], Float[Tensor, "N Hk S D"]]:
        """Turn each query and key by its position."""


@runtime_checkable
class Bias(Protocol):
    """An encoding that adds to the scores what follows from the positions alone."""

    def bias(
        self, q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]
    ) -> Float[Tensor, "H L S"]:
        """What is added to the score of each query and key; -inf blocks."""


@runtime_checkable
class ScoreBias(Protocol):
    """An encoding that adds to the scores what follows from the content too."""

    def score_bias(
        self,
        q: Float[Tensor, "N H L D"],
        k: Float[Tensor, "N H S D"],
        x: Float[Tensor, "N L E"],
        q_positions: Int[Tensor, "L"],
        k_positions: Int[Tensor, "S"],
    ) -> Float[Tensor, "N H L S"]:
        """What is added to the score of each query and key."""


def place_of(encoding: nn.Module) -> Place:
    """Where an encoding acts."""
    place: Place = getattr(encoding, "acts_on", "embeddings")
    return place


def make_encoding(
    factory: Callable[..., nn.Module], embed_dim: int, *, num_heads: int, is_causal: bool
) -> nn.Module:
    """Call a factory with what its signature asks for.

    Args:
        factory: of one positional encoding.
        embed_dim: width of the embeddings.
        num_heads: heads of the attention.
        is_causal: whether every query sees earlier keys only.
    """
    known: dict[str, Any] = {"num_heads": num_heads, "is_causal": is_causal}
    wanted = inspect.signature(factory).parameters
    return factory(embed_dim, **{name: known[name] for name in known if name in wanted})
