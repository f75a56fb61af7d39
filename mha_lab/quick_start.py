"""Lightning in half the time: without the metrics that nobody here computes.

Lightning imports all of torchmetrics, which imports ``transformers`` and ``scipy`` wherever they
are installed: three seconds at every start, for nothing. While Lightning is imported, and only
then, these two are not found.
"""

import importlib.metadata
from unittest.mock import patch

_UNNEEDED = ("transformers", "scipy")
_distribution = importlib.metadata.distribution


def import_lightning() -> None:
    """Import ``pytorch_lightning``, unless it is imported already."""
    with patch.object(importlib.metadata, "distribution", _without_unneeded):
        import pytorch_lightning  # noqa: F401


def _without_unneeded(name: str) -> importlib.metadata.Distribution:
    if name in _UNNEEDED:
        raise importlib.metadata.PackageNotFoundError(name)
    return _distribution(name)
