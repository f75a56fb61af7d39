"""One attention map as it lies in an event file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mha_lab.view.header import Header
from mha_lab.view.packed import unpack_weights
from mha_lab.view.page import Part
from mha_lab.view.selection import chosen_part
from mha_lab.view.shown import Shown, show

if TYPE_CHECKING:
    from mha_lab.maps.attention_map import AttentionMap


@dataclass(frozen=True)
class StoredMap:
    """One attention map of one step of one run.

    Attributes:
        run: The run's folder relative to ``logdir``; "." for ``logdir`` itself.
        tag: The tag it was written under, as "attention/encoder.layers.0.self_attn".
        step: The training step.
        wall_time: Seconds since 1970.
        header: Its shape, its precision, and the rest that :class:`Header` lists.
    """

    run: str
    tag: str
    step: int
    wall_time: float
    header: Header
    packed: bytes

    @property
    def weights(self) -> NDArray[np.float32]:
        """(N, H, L, S), unpacked on every access; :mod:`mha_lab.view.codec` says how exact.

        Raises:
            DamagedMapError: The file is damaged here.
        """
        return unpack_weights(self.header, self.packed)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, H, L, S) of ``weights``."""
        return self.header.shape

    @property
    def name(self) -> str:
        """The module's path; a second call of the module in one step ends in "#2"."""
        return self.header.name

    @property
    def kind(self) -> str:
        """One of "self", "masked" and "cross"."""
        return self.header.kind

    @property
    def query_tokens(self) -> list[list[str]] | None:
        """N lists of L labels, or None."""
        return self.header.query_tokens

    @property
    def key_tokens(self) -> list[list[str]] | None:
        """N lists of S labels, or None."""
        return self.header.key_tokens

    @property
    def scores(self) -> dict[str, NDArray[np.float32]]:
        """Score name to (H,) or (N, H); six significant digits were kept."""
        return {
            name: np.array(values, dtype=np.float32) for name, values in self.header.scores.items()
        }

    def part(
        self,
        run: str | None = None,
        samples: Sequence[int] | None = None,
        max_size: int | None = None,
    ) -> Part:
        """The map as it travels in a page; see :mod:`mha_lab.view.page`.

        Args:
            run: What to call where it comes from; None means its run.
            samples: Which of the map's samples; None means all.
            max_size: The largest length along each axis; a longer one is pooled.
        """
        name = run or self.run
        header, packed = chosen_part(self.header, self.packed, samples, max_size)
        return Part(name, self.tag, self.name, self.step, self.wall_time, header, packed)

    def as_map(self) -> AttentionMap:
        """The same as :class:`AttentionMap`: drawn, saved, rolled out as what was just recorded.

        Raises:
            DamagedMapError: The file is damaged here.
        """
        import torch  # only here: reading and showing do without

        from mha_lab.maps.attention_map import AttentionMap

        header = self.header
        scores = {name: torch.from_numpy(values) for name, values in self.scores.items()}
        are_kept = scores or header.measure != "weights"  # else they are computed anew
        about: dict[str, Any] = {
            name: None if values is None else tuple(values)
            for name, values in (("heads", header.heads), ("key_heads", header.key_heads))
        }
        for name in ("name", "kind", "query_tokens", "key_tokens", "pool", "measure"):
            about[name] = getattr(header, name)
        return AttentionMap(
            weights=torch.from_numpy(self.weights),
            size=tuple(header.size or ()),
            samples=tuple(header.samples or ()),
            whole_scores=scores if are_kept else None,
            **about,
        )

    def show(self, **options: Any) -> Shown:
        """Show the map alone or with others; see :func:`mha_lab.view.shown.show`."""
        return show(self, **options)

    def _repr_html_(self) -> str | None:
        """What notebooks show; a map without samples is shown as any object is."""
        return self.show()._repr_html_() if self.shape[0] else None

    def __repr__(self) -> str:
        return (
            f"StoredMap(run={self.run!r}, name={self.name!r}, step={self.step}, "
            f"kind={self.kind!r}, shape={self.header.shape})"
        )
