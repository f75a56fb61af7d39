"""A list of recorded maps, and what is made of all of them."""

from __future__ import annotations

from fnmatch import fnmatchcase

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.maps.rollout import attention_rollout
from mha_lab.view.gallery import Gallery


class AttentionMaps(Gallery[AttentionMap]):
    """The maps of a recording: a list in every respect, which a notebook shows.

    Args:
        maps: What it holds at first.
        title: What to call where the maps come from; None leaves it to the maps.
    """

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
            ValueError: If no map is chosen, or they are not whole self-attention of one sequence.
        """
        chosen = [one for one in self if fnmatchcase(one.name, names)]
        if self and not chosen:
            raise ValueError(
                f"names={names!r} matches no map; there are {', '.join(one.name for one in self)}"
            )
        return AttentionMaps(attention_rollout(chosen, residual=residual), title="rollout")
