"""All maps of the best runs, as a page to look around in."""

from collections.abc import Sequence

from mha_lab.reporting.best_maps import BestMaps
from mha_lab.reporting.document import Attached
from mha_lab.tensorboard.reader import read_attention
from mha_lab.view.shown import show

NAME = "attention_maps.html"


def all_maps(found: Sequence[BestMaps]) -> Attached:
    """Every layer and head of each group's best run, at the step whose weights were tested.

    Args:
        found: at least one that has maps.
    """
    groups = {
        one.group.label or "all runs": read_attention(one.run.folder, step=one.step)
        for one in found
        if one.run is not None and one.maps
    }
    page = show(groups).html
    return Attached(NAME, page, "Every layer and head of these runs, to look around in.")
