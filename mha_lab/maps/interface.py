"""What drawing and saving ask of a map; ``AttentionMap`` is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from mha_lab.maps.image import ImageTokens
from mha_lab.view.page import Part


class Drawable(Protocol):
    """The attributes of an :class:`mha_lab.maps.attention_map.AttentionMap` that are read."""

    @property
    def name(self) -> str:
        """The module's path."""

    @property
    def kind(self) -> str:
        """Of the attention: "self", "masked" or "cross"."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, H, L, S) of ``weights``."""

    @property
    def weights(self) -> Float[Tensor, "N H L S"]:
        """The distribution before dropout."""

    @property
    def query_tokens(self) -> list[list[str]] | None:
        """One list of L labels a sample, or None."""

    @property
    def key_tokens(self) -> list[list[str]] | None:
        """One list of S labels a sample, or None."""

    @property
    def size(self) -> tuple[int, ...]:
        """(L, S) of the call itself."""

    @property
    def samples(self) -> tuple[int, ...]:
        """Which samples of the batch these are."""

    @property
    def heads(self) -> tuple[int, ...] | None:
        """Which heads these are; None when they were averaged."""

    @property
    def whole_scores(self) -> dict[str, Tensor] | None:
        """The scores of the whole map where this one was pooled."""

    @property
    def value_norms(self) -> Float[Tensor, "N H S"] | None:
        """The norms of the values, where they were recorded."""

    @property
    def weighted(self) -> Float[Tensor, "N H L S"] | None:
        """The pooled map of weights times these norms, where both were wanted."""

    @property
    def pool(self) -> str:
        """What a pooled map holds of each block."""

    @property
    def key_heads(self) -> tuple[int, ...] | None:
        """Which head of keys each head reads, where several read one."""

    @property
    def images(self) -> tuple[ImageTokens, ...] | None:
        """One image a sample whose patches the keys are, or None."""

    @property
    def measure(self) -> str:
        """What the numbers are."""

    def head_names(self, heads: Sequence[int] | None = None) -> list[str]:
        """What to call the map's heads, or those with these indices."""

    def plot(self, sample: int = 0, heads: int | Sequence[int] | None = None) -> Figure:
        """Draw the heads of one sample."""

    def part(
        self,
        run: str | None = None,
        samples: Sequence[int] | None = None,
        max_size: int | None = None,
    ) -> Part:
        """The map as it travels in a page."""
