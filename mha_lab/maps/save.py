"""Attention maps as files: a picture, a page to point at, or numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from mha_lab.view.page import page

if TYPE_CHECKING:
    from mha_lab.maps.interface import Drawable

SUFFIXES = (".png", ".svg", ".html", ".npz")
_OPTIONAL = ("value_norms", "weighted")


def save_map(
    one: Drawable, path: str | Path, sample: int = 0, heads: Sequence[int] | None = None
) -> Path:
    """Write a map to a file of the kind that its suffix says.

    Args:
        one: The map.
        path: Ends in .png or .svg (a picture of one sample), .html (a page that shows every
            weight under the pointer; one file, nothing from outside) or .npz (numpy arrays).
        sample: Which of the map's samples a picture shows.
        heads: Which of the map's heads a picture shows; None means all.

    Returns:
        The path.

    Raises:
        ValueError: If the suffix is another, or the map lacks the sample or a head.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise ValueError(f"path={str(path)!r} must end in one of {', '.join(SUFFIXES)}")
    if path.suffix == ".npz":
        with path.open("wb") as file:  # else numpy opens it under a name of its own
            np.savez_compressed(file, **_arrays(one))
    elif path.suffix == ".html":
        path.write_text(page([one.part("map")], title=one.name), encoding="utf-8")
    else:
        one.plot(sample, heads).savefig(path, dpi=150)
    return path


def load_arrays(path: str | Path) -> dict[str, Any]:
    """What :meth:`AttentionMap.load` makes a map of, from an .npz file that ``save`` wrote."""
    with np.load(path, allow_pickle=False) as file:
        stored = dict(file)
    about: dict[str, Any] = json.loads(str(stored["about"]))
    for name in ("samples", "heads", "size", "key_heads"):
        if about.get(name) is not None:
            about[name] = tuple(about[name])
    about["weights"] = torch.from_numpy(stored["weights"])
    scores = {name[7:]: torch.from_numpy(stored[name]) for name in stored if name[:7] == "scores/"}
    has_scores = about.pop("has_scores", bool(scores))  # older files do not say
    about["whole_scores"] = scores if has_scores else None
    for name in _OPTIONAL:
        about[name] = torch.from_numpy(stored[name]) if name in stored else None
    return about


def _arrays(one: Drawable) -> dict[str, Any]:
    about = {
        "name": one.name,
        "kind": one.kind,
        "query_tokens": one.query_tokens,
        "key_tokens": one.key_tokens,
        "size": one.size,
        "samples": one.samples,
        "heads": one.heads,
        "has_scores": one.whole_scores is not None,
        "pool": one.pool,
        "key_heads": one.key_heads,
        "measure": one.measure,
    }
    arrays = {"weights": one.weights.cpu().numpy(), "about": json.dumps(about)}
    for name in _OPTIONAL:
        if (values := getattr(one, name)) is not None:
            arrays[name] = values.cpu().numpy()
    scores = {f"scores/{name}": values.cpu() for name, values in (one.whole_scores or {}).items()}
    return {**arrays, **scores}
