"""All maps of the best runs, as a page to look around in."""

from collections.abc import Sequence

from mha_lab.reporting.best_maps import BestMaps
from mha_lab.reporting.document import Attached
from mha_lab.tensorboard.reader import read_attention
from mha_lab.view.panes import MOST_PANES
from mha_lab.view.shown import show

NAME = "attention_maps.html"


def all_maps(found: Sequence[BestMaps]) -> Attached:
    """Every layer and head of the first groups' best runs, at the step whose weights were tested.

    Args:
        found: at least one that has maps.
    """
    groups = {
        one.group.label or "all runs": (one.run.folder, one.step)
        for one in found
        if one.run is not None and one.maps
    }
    shown = list(groups)[:MOST_PANES]  # more do not stand side by side
    page = show({name: read_attention(groups[name][0], step=groups[name][1]) for name in shown})
    whose = "these runs" if len(shown) == len(groups) else f"the first {len(shown)} of these runs"
    return Attached(NAME, page.html, f"Every layer and head of {whose}, to look around in.")
