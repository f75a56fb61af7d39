"""Quick pictures of a map's heads and of all heads' scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.maps.raster import Raster
from mha_lab.maps.raster_grid import draw_maps
from mha_lab.maps.scores import SCORE_NAMES


def draw_heads(one: AttentionMap, sample: int, title: str) -> Raster:
    """Draw all heads of one sample, queries downwards and keys to the right.

    Args:
        one: The map.
        sample: Which of the map's samples, counted from 0.
        title: The line above.

    Returns:
        The picture.
    """
    return draw_maps(
        one.weights[sample].float().cpu().numpy(),
        title=title,
        names=one.head_names(),
        row_labels=one.query_tokens[sample] if one.query_tokens else (),
        column_labels=one.key_tokens[sample] if one.key_tokens else (),
    )


def draw_scores(scores: Mapping[str, Mapping[str, Sequence[float]]], title: str) -> Raster:
    """Draw all scores of all heads: a panel a score, a row a map, a column a head.

    Args:
        scores: For each map's name, for each score's name, one number a head.
        title: The line above.

    Returns:
        The picture. A head without a score is grey.
    """
    shown = [name for name in SCORE_NAMES if any(name in of_map for of_map in scores.values())]
    heads = max((len(row) for of_map in scores.values() for row in of_map.values()), default=0)
    panels = np.full((len(shown), len(scores), heads), np.nan)
    for row, of_map in enumerate(scores.values()):
        for name, values in of_map.items():
            panels[shown.index(name), row, : len(values)] = values
    return draw_maps(
        panels,
        title=title,
        names=shown,
        row_labels=list(scores),
        column_labels=[str(head) for head in range(heads)],
        same_scale=False,
        longest_label=80,
        zero_is_blocked=False,
        by_root=False,
    )
