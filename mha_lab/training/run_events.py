"""A run's TensorBoard events: the losses come first, what is told of the whole run last."""

from collections.abc import Mapping

from pytorch_lightning.loggers import TensorBoardLogger
from pytorch_lightning.utilities import rank_zero_only

WHOLE_RUN = "whole_run"
"""TensorBoard sorts by name and opens two groups at first: ``test`` and ``train``."""


class RunEvents(TensorBoardLogger):
    """Lightning's logger; numbers without a group, such as ``epoch``, get one that comes last."""

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log numbers, a tag each."""
        super().log_metrics(grouped(metrics), step)


def grouped(metrics: Mapping[str, float]) -> dict[str, float]:
    """The same numbers, those without a group in one of their own."""
    return {name if "/" in name else f"{WHOLE_RUN}/{name}": n for name, n in metrics.items()}
