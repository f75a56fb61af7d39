"""One recorded attention map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from mha_lab.recording.caller import Kind
from mha_lab.recording.scores import score_weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class AttentionMap:
    """The attention weights of one call of one module.

    Attributes:
        name: The module's path; a second call of the same module ends in "#2", and so on.
        weights: (N, H, L, S), detached: the distribution before dropout.
        kind: "self", "masked" (no query sees a later key) or "cross".
        query_tokens: One list of L labels a sample, or None.
        key_tokens: One list of S labels a sample, or None.
        size: (L, S) of the call itself; larger than that of ``weights`` when the map was pooled.
        samples: Which samples of the batch these are.
        heads: Which heads these are; None when they were averaged.
        whole_scores: The scores of the whole map where this one was pooled; else None.
    """

    name: str
    weights: Float[Tensor, "N H L S"]
    kind: Kind = "self"
    query_tokens: list[list[str]] | None = None
    key_tokens: list[list[str]] | None = None
    size: tuple[int, int] | None = None
    samples: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    whole_scores: dict[str, Tensor] | None = None

    def head_names(self, heads: Sequence[int] | None = None) -> list[str]:
        """What to call the map's heads, or those with these indices: "head 3", or "mean"."""
        if self.heads is None and self.weights.shape[1] == 1:
            return ["mean of heads"]
        numbers = self.heads or range(self.weights.shape[1])
        return [f"head {numbers[i]}" for i in (range(len(numbers)) if heads is None else heads)]

    def plot(self, sample: int = 0, heads: Sequence[int] | None = None) -> Figure:
        """Draw the heads of one sample; see :func:`mha_lab.recording.plot.plot_map`."""
        from mha_lab.recording.plot import plot_map

        return plot_map(self, sample, heads)

    def scores(self) -> dict[str, Float[Tensor, H]]:
        """One number (H,) a head for each score; see :mod:`mha_lab.recording.scores`.

        Returns:
            Those that the map has: duplicate_token and induction need tokens, the same on both
            axes. A pooled map has those of the whole map that need no tokens.
        """
        if self.whole_scores is not None:
            return self.whole_scores
        if self.is_pooled:
            return {}
        is_one_sequence = self.kind != "cross"
        return score_weights(self.weights, self.query_tokens, is_one_sequence=is_one_sequence)

    @property
    def is_pooled(self) -> bool:
        """Whether the map is smaller than the call's."""
        return self.size is not None and self.size != tuple(self.weights.shape[-2:])

    def with_tokens(
        self, query_tokens: Sequence[Sequence[str]], key_tokens: Sequence[Sequence[str]]
    ) -> AttentionMap:
        """The same map with its tokens; those of a pooled map are named by first and last."""
        length, source = self.size or self.weights.shape[-2:]
        rows, columns = self.weights.shape[-2:]
        return replace(
            self,
            query_tokens=[pool_tokens(tokens, length, rows) for tokens in query_tokens],
            key_tokens=[pool_tokens(tokens, source, columns) for tokens in key_tokens],
        )


def pool_tokens(tokens: Sequence[str], length: int, size: int) -> list[str]:
    """Label ``size`` blocks of a sequence of ``length`` tokens, by first and last token.

    Tokens that are missing at the end, as those of padding often are, have empty labels.
    """
    labels = [str(token) for token in tokens[:length]] + [""] * (length - len(tokens))
    if size == length:
        return labels
    blocks = [(i * length // size, -(-(i + 1) * length // size) - 1) for i in range(size)]
    return [f"{labels[a]}…{labels[b]}" if labels[a] or labels[b] else "" for a, b in blocks]
