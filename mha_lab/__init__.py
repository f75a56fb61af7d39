"""mha_lab: the bench where attention mechanisms are tried, seen and compared.

The public names are imported on first use, so that ``import mha_lab`` and the command line's
``--help`` cost nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mha_lab.attention.multihead.module import MultiheadAttention
    from mha_lab.attention.multihead.swap import swap_attention
    from mha_lab.callbacks.attention_map_logger import AttentionMapLogger
    from mha_lab.maps.attention_map import AttentionMap
    from mha_lab.maps.attention_maps import AttentionMaps
    from mha_lab.maps.image import ImageTokens
    from mha_lab.recording.recorder import record_attention
    from mha_lab.tensorboard.reader import read_attention
    from mha_lab.view.shown import show

__version__ = "0.1.0"

_HOMES = {
    "AttentionMap": "mha_lab.maps.attention_map",
    "AttentionMapLogger": "mha_lab.callbacks.attention_map_logger",
    "AttentionMaps": "mha_lab.maps.attention_maps",
    "ImageTokens": "mha_lab.maps.image",
    "MultiheadAttention": "mha_lab.attention.multihead.module",
    "read_attention": "mha_lab.tensorboard.reader",
    "record_attention": "mha_lab.recording.recorder",
    "show": "mha_lab.view.shown",
    "swap_attention": "mha_lab.attention.multihead.swap",
}

__all__ = [
    "AttentionMap",
    "AttentionMapLogger",
    "AttentionMaps",
    "ImageTokens",
    "MultiheadAttention",
    "read_attention",
    "record_attention",
    "show",
    "swap_attention",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its home on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mha_lab' has no attribute {name!r}")
    if name == "AttentionMapLogger":  # LightningCLI asks whether it is a callback of its package
        import_module("mha_lab.callbacks.any_lightning").take_bases()
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names too, although they are not imported yet."""
    return sorted([*globals(), *__all__])
