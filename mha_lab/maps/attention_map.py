"""One recorded attention map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jaxtyping import Float
from torch import Tensor

from mha_lab.maps.image import ImageTokens
from mha_lab.maps.scores import WholeMap, score_weights
from mha_lab.maps.value_weighted import value_weighted
from mha_lab.maps.words import pooled_from
from mha_lab.view.header import Header
from mha_lab.view.packed import pack_weights
from mha_lab.view.page import Part
from mha_lab.view.pooling import pool_tokens
from mha_lab.view.selection import chosen_part
from mha_lab.view.shown import Shown, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Kind = Literal["self", "masked", "cross"]
"""Of the attention: to itself, to itself without what is later, or to another sequence."""

Measure = Literal["weights", "value-weighted", "rollout"]
"""What the numbers of a map are; see :mod:`mha_lab.maps.value_weighted` and ``rollout``."""


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The attention weights of one call of one module; equal only to itself, as tensors are.

    Attributes:
        name: The module's path; a second call of the same module ends in "#2", and so on.
        weights: (N, H, L, S), detached: the distribution before dropout.
        kind: "self", "masked" (no query sees a later key) or "cross".
        query_tokens: One list of L labels a sample, or None.
        key_tokens: One list of S labels a sample, or None.
        size: (L, S) of the call itself; larger than that of ``weights`` when the map was pooled.
            Empty means the same.
        samples: Which samples of the batch these are. Empty means 0 to N-1.
        heads: Which heads these are; None when they were averaged. Empty means 0 to H-1.
        whole_scores: The scores of the whole map where this one was pooled, none where its weights
            are no distribution; else None.
        whole: What is kept of the whole map where this one was pooled, until its tokens are known:
            padding does not count in scores, and words make scores too.
        pool: What a pooled map holds of each block: "mean" or "max".
        key_heads: Which head of keys each head reads, where several read one (grouped-query
            attention); else None.
        images: One image a sample whose patches the keys are, or None.
        value_norms: The norms (N, H, S) of the values that the weights are applied to, before
            pooling, where they were recorded; else None.
        weighted: The pooled map of weights times these norms, where both are wanted; else None.
        measure: What the numbers are: weights, or what was made of them.
    """

    name: str
    weights: Float[Tensor, "N H L S"]
    kind: Kind = "self"
    query_tokens: list[list[str]] | None = None
    key_tokens: list[list[str]] | None = None
    size: tuple[int, ...] = ()
    samples: tuple[int, ...] = ()
    heads: tuple[int, ...] | None = ()
    whole_scores: dict[str, Tensor] | None = None
    whole: WholeMap | None = None
    pool: Literal["mean", "max"] = "mean"
    key_heads: tuple[int, ...] | None = None
    images: tuple[ImageTokens, ...] | None = None
    value_norms: Float[Tensor, "N H S"] | None = None
    weighted: Float[Tensor, "N H L S"] | None = None
    measure: Measure = "weights"

    def __post_init__(self) -> None:
        if self.weights.ndim != 4:
            raise ValueError(
                f"weights of {self.name!r} have shape {tuple(self.weights.shape)}; "
                "a map needs (N, H, L, S)"
            )
        n, h, *size = self.weights.shape
        object.__setattr__(self, "size", self.size or tuple(size))
        object.__setattr__(self, "samples", self.samples or tuple(range(n)))
        if self.heads is not None:
            object.__setattr__(self, "heads", self.heads or tuple(range(h)))

    def __repr__(self) -> str:
        pooled = f", {pooled_from(self)}" if self.is_pooled else ""
        return f"AttentionMap(name={self.name!r}, kind={self.kind!r}, shape={self.shape}{pooled})"

    def head_names(self, heads: Sequence[int] | None = None) -> list[str]:
        """What to call the map's heads, or those with these indices: "head 3", or "mean"."""
        if self.heads is None:
            return ["mean of heads"]
        chosen = self.heads if heads is None else [self.heads[i] for i in heads]
        return [f"head {head}" for head in chosen]

    def show(self, **options: Any) -> Shown:
        """Show the map alone or with others; see :func:`mha_lab.view.shown.show`."""
        return show(self, **options)

    def _repr_html_(self) -> str | None:
        """What notebooks show; a map without samples is shown as any object is."""
        return self.show()._repr_html_() if len(self.weights) else None

    def plot(self, sample: int = 0, heads: int | Sequence[int] | None = None) -> Figure:
        """Draw the heads of one sample; see :func:`mha_lab.maps.plot.plot_map`."""
        from mha_lab.maps.plot import plot_map

        return plot_map(self, sample, heads)

    def save(
        self, path: str | Path, sample: int = 0, heads: int | Sequence[int] | None = None
    ) -> Path:
        """Write a .png, .svg, .html or .npz file; see :func:`mha_lab.maps.save.save_map`."""
        from mha_lab.maps.save import save_map

        return save_map(self, path, sample, heads)

    @classmethod
    def load(cls, path: str | Path) -> AttentionMap:
        """Read a map from an .npz file that ``save`` wrote.

        Raises:
            ValueError: If the file holds something else, or several maps.
        """
        from mha_lab.maps.numbers import load_one

        return cls(**load_one(path))

    def scores(self) -> dict[str, Float[Tensor, H]]:
        """One number (H,) a head for each score; see :mod:`mha_lab.maps.scores`.

        Returns:
            Those that the map has: duplicate_token and induction need tokens, the same on both
            axes. A pooled map has those of the whole map; of one with more than a million weights
            those that need no tokens.
        """
        if self.whole_scores is not None:
            return self.whole_scores
        if self.is_pooled:
            return {}
        is_one_sequence = self.kind != "cross"
        return score_weights(self.weights, self.query_tokens, is_one_sequence=is_one_sequence)

    def value_weighted(self) -> AttentionMap:
        """The map of w·‖v‖; see :mod:`mha_lab.maps.value_weighted`.

        Returns:
            The same map with each weight multiplied by the norm of its value; of a pooled map the
            products are pooled, not the weights. Rows no longer sum to 1, so the map has no scores.

        Raises:
            ValueError: If the map was recorded without ``values=True``.
        """
        if self.value_norms is None:
            raise ValueError(
                f"{self.name!r} has no norms of values; record it with "
                "record_attention(model, values=True)"
            )
        if self.is_pooled and self.weighted is None:
            raise ValueError(
                f"{self.name!r} was pooled without its values; record it with values=True, or whole"
            )
        weights = self.weighted
        if weights is None:
            weights = value_weighted(self.weights, self.value_norms)
        return replace(
            self,
            weights=weights,
            whole_scores={},
            whole=None,
            value_norms=None,
            weighted=None,
            measure="value-weighted",
        )

    def part(
        self,
        run: str | None = None,
        samples: Sequence[int] | None = None,
        max_size: int | None = None,
    ) -> Part:
        """The map as it travels in a page; see :mod:`mha_lab.view.page`.

        Args:
            run: What to call where it comes from; None means "maps".
            samples: Which of the map's samples; None means all.
            max_size: The largest length along each axis; a longer one is pooled.
        """
        chosen = list(range(len(self.samples))) if samples is None else list(samples)

        def of_samples(tokens: list[list[str]] | None) -> list[list[str]] | None:
            return None if tokens is None else [tokens[i] for i in chosen]

        header, codes = pack_weights(
            self.weights[chosen].float().cpu().numpy(),
            name=self.name,
            kind=self.kind,
            query_tokens=of_samples(self.query_tokens),
            key_tokens=of_samples(self.key_tokens),
            samples=[self.samples[i] for i in chosen],
            heads=None if self.heads is None else list(self.heads),
            size=list(self.size),
            scores={name: values.tolist() for name, values in self.scores().items()},
            pool=self.pool,
            key_heads=None if self.key_heads is None else list(self.key_heads),
            images=None if self.images is None else [self.images[i].about() for i in chosen],
            measure=self.measure,
        )
        header, codes = chosen_part(Header.from_json(header), codes, None, max_size)
        return Part(run or "maps", self.name, self.name, 0, 0.0, header, codes)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, H, L, S) of ``weights``."""
        n, h, length, source = self.weights.shape
        return n, h, length, source

    @property
    def is_pooled(self) -> bool:
        """Whether the map is smaller than the call's."""
        return self.size != tuple(self.weights.shape[-2:])

    def with_tokens(
        self,
        query_tokens: Sequence[Sequence[str]] | None,
        key_tokens: Sequence[Sequence[str]] | None,
    ) -> AttentionMap:
        """The same map with its tokens; None leaves an axis without.

        Args:
            query_tokens: One list a sample, of at most as many tokens as the call had queries;
                those that are missing at the end, as padding often is, get empty labels.
            key_tokens: The same of the keys.

        Returns:
            A map with one label a row and column. A block of a pooled map is named by its first
            and last token.

        Raises:
            ValueError: If there are too many tokens, or not one list a sample.
        """
        return replace(
            self,
            query_tokens=self._labels("query", query_tokens, axis=0),
            key_tokens=self._labels("key", key_tokens, axis=1),
            images=self._images(key_tokens),
            whole_scores=self._scores_of_whole(query_tokens),
            whole=None,
        )

    def _scores_of_whole(self, tokens: Sequence[Sequence[str]] | None) -> dict[str, Tensor] | None:
        """The whole map's scores, by its tokens where both are there."""
        if self.whole is None or tokens is None:
            return self.whole_scores
        length = self.size[0]
        rows = [pool_tokens(row, length, length) for row in tokens]
        return self.whole.scores(rows, is_one_sequence=self.kind != "cross")

    def _images(self, tokens: Sequence[Sequence[str]] | None) -> tuple[ImageTokens, ...] | None:
        """The images whose patches the keys are, if each key is one."""
        images = [row for row in tokens or () if isinstance(row, ImageTokens)]
        keys = self.weights.shape[-1]
        if len(images) < len(self.samples) or any(len(image) != keys for image in images):
            return None
        return tuple(images)

    def _labels(
        self, which: str, tokens: Sequence[Sequence[str]] | None, axis: int
    ) -> list[list[str]] | None:
        """The labels along one axis of each sample."""
        if tokens is None:
            return None
        if len(tokens) != len(self.samples):
            raise ValueError(
                f"{self.name!r} was given {which} tokens of {len(tokens)} samples; "
                f"the map has {len(self.samples)} samples"
            )
        length = self.size[axis]
        longest = max(map(len, tokens), default=0)
        if longest > length:
            raise ValueError(
                f"{self.name!r} was given {longest} {which} tokens; "
                f"its {which} axis has length {length}"
            )
        return [pool_tokens(row, length, self.weights.shape[2 + axis]) for row in tokens]
