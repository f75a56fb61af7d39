"""Attention maps as numpy arrays in one .npz file, and back, with all that is known of them.

Map ``i`` has its weights under ``weights`` (or ``weights/1`` and so on of the maps after the
first), and what is no array as JSON under ``about``, ``about/1``, ...
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha_lab.maps.image import ImageTokens

if TYPE_CHECKING:
    from mha_lab.maps.interface import Drawable

_OPTIONAL = ("value_norms", "weighted")
_SCORES, _IMAGES = "scores/", "images/"


def save_arrays(maps: Sequence[Drawable], path: Path) -> None:
    """Write maps to an .npz file.

    Raises:
        ValueError: If there are no maps.
    """
    if not maps:
        raise ValueError("there are no maps to save: the list is empty")
    arrays = {
        f"{name}{_behind(i)}": values
        for i, one in enumerate(maps)
        for name, values in _arrays(one).items()
    }
    with path.open("wb") as file:  # else numpy opens it under a name of its own
        np.savez_compressed(file, **arrays)


def load_arrays(path: str | Path) -> list[dict[str, Any]]:
    """The arguments of each :class:`AttentionMap` in an .npz file that ``save_arrays`` wrote.

    Raises:
        ValueError: If the file holds something else.
    """
    stored: dict[str, Any] = {}
    try:
        with np.load(Path(path).expanduser(), allow_pickle=False) as file:
            stored = dict(file)
    except (ValueError, AttributeError, TypeError, EOFError) as error:
        raise ValueError(f"path={str(path)!r} is no .npz file of arrays") from error
    if "about" not in stored:
        raise ValueError(
            f"path={str(path)!r} holds no attention maps; AttentionMap.save writes some"
        )
    count = sum(name.partition("/")[0] == "about" for name in stored)
    return [_arguments(stored, _behind(i)) for i in range(count)]


def load_one(path: str | Path) -> dict[str, Any]:
    """The arguments of the only map in a file.

    Raises:
        ValueError: If the file holds something else, or several maps.
    """
    found = load_arrays(path)
    if len(found) > 1:
        raise ValueError(
            f"path={str(path)!r} holds {len(found)} maps; read them with AttentionMaps.load"
        )
    return found[0]


def _behind(place: int) -> str:
    """What stands behind the names of a map's arrays; those of the first have always been bare."""
    return f"/{place}" if place else ""


def _arguments(stored: dict[str, Any], behind: str) -> dict[str, Any]:
    about: dict[str, Any] = json.loads(str(stored[f"about{behind}"]))
    for name in ("samples", "heads", "size", "key_heads"):
        if about.get(name) is not None:
            about[name] = tuple(about[name])
    about["weights"] = torch.from_numpy(stored[f"weights{behind}"])
    older = [name.removeprefix(_SCORES) for name in stored if name.startswith(_SCORES)]
    names = about.pop("scores", older if about.pop("has_scores", bool(older)) else None)
    about["whole_scores"] = (
        None
        if names is None
        else {name: torch.from_numpy(stored[f"{_SCORES}{name}{behind}"]) for name in names}
    )
    for name in _OPTIONAL:
        values = stored.get(f"{name}{behind}")
        about[name] = None if values is None else torch.from_numpy(values)
    if (images := about.get("images")) is not None:
        about["images"] = tuple(
            ImageTokens(stored[f"{_IMAGES}{i}{behind}"], tuple(image["grid"]), image["first"])
            for i, image in enumerate(images)
        )
    return about


def _arrays(one: Drawable) -> dict[str, Any]:
    images = one.images or ()
    about = {
        "name": one.name,
        "kind": one.kind,
        "query_tokens": one.query_tokens,
        "key_tokens": one.key_tokens,
        "size": one.size,
        "samples": one.samples,
        "heads": one.heads,
        "scores": None if one.whole_scores is None else list(one.whole_scores),
        "pool": one.pool,
        "key_heads": one.key_heads,
        "images": [{"grid": image.grid, "first": image.first} for image in images] or None,
        "measure": one.measure,
    }
    arrays: dict[str, Any] = {"weights": _numbers(one.weights), "about": json.dumps(about)}
    for name in _OPTIONAL:
        if (values := getattr(one, name)) is not None:
            arrays[name] = _numbers(values)
    scores = one.whole_scores or {}
    arrays |= {f"{_SCORES}{name}": _numbers(values) for name, values in scores.items()}
    return arrays | {f"{_IMAGES}{i}": image.pixels for i, image in enumerate(images)}


def _numbers(values: Tensor) -> NDArray[np.floating]:
    """The values as numpy's, which knows no bfloat16."""
    values = values.detach().cpu()
    array: NDArray[np.floating] = (
        values.float() if values.dtype == torch.bfloat16 else values
    ).numpy()
    return array
