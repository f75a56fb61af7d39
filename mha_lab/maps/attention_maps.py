"""A list of recorded maps, and what is made of all of them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.maps.rollout import attention_rollout
from mha_lab.view.files import file_to_write
from mha_lab.view.gallery import Gallery


class AttentionMaps(Gallery[AttentionMap]):
    """The maps of a recording: a list in every respect, which a notebook shows.

    Args:
        maps: What it holds at first.
        title: What to call where the maps come from; None leaves it to the maps.
    """

    def save(self, path: str | Path, **options: Any) -> Path:
        """Write all maps to one file of the kind that its suffix says; one there is replaced.

        Args:
            path: Ends in .html (a self-contained page that needs neither network nor Python),
                .png or .svg (a picture of one sample) or .npz (numpy arrays).
            options: Of a page those of ``show``; of a picture ``sample=``, which of the samples,
                and ``title=``, a line above.

        Returns:
            The path.

        Raises:
            TypeError: If there is no such option.
            ValueError: If the path ends otherwise, there is nothing to show, or an option's value
                cannot be.
            FileNotFoundError: If its folder does not exist.
        """
        from mha_lab.maps.save import SUFFIXES, save_maps

        path = file_to_write(path, SUFFIXES)
        if path.suffix.lower() == ".html":
            return super().save(path, **options)
        return save_maps(self, path, **options)

    @classmethod
    def load(cls, path: str | Path) -> AttentionMaps:
        """Read maps from an .npz file that ``save`` wrote.

        Raises:
            ValueError: If the file holds something else.
        """
        from mha_lab.maps.numbers import load_arrays

        return cls(AttentionMap(**one) for one in load_arrays(path))

    def value_weighted(self) -> AttentionMaps:
        """Each map with its weights multiplied by the norms of their values.

        Rows no longer sum to 1; see :meth:`AttentionMap.value_weighted`.

        Raises:
            ValueError: If a map is pooled, or has no norms (``record_attention(values=True)``).
        """
        return AttentionMaps((one.value_weighted() for one in self), title="value-weighted")

    def rollout(self, names: str = "*", *, residual: float = 0.5) -> AttentionMaps:
        """Attention rolled out over the layers of one stack.

        Args:
            names: A glob that chooses the maps of one stack, such as ``"encoder.*"``.
            residual: The share that passes each layer as it is; the paper's is 0.5.

        Returns:
            One map (N, 1, L, L) a layer; see :func:`mha_lab.maps.rollout.attention_rollout`.

        Raises:
            TypeError: If names is no text, or residual no number.
            ValueError: If no map is chosen, or they are not whole self-attention of one sequence
                in one stack.
        """
        if not isinstance(names, str):
            raise TypeError(f"names={names!r} must be a glob of module paths, not a list of them")
        chosen = [one for one in self if fnmatchcase(one.name, names)]
        if self and not chosen:
            raise ValueError(
                f"names={names!r} matches no map; there are {', '.join(one.name for one in self)}"
            )
        return AttentionMaps(attention_rollout(chosen, residual=residual), title="rollout")
