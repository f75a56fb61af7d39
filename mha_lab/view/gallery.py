"""A list of maps that shows itself in a notebook, and can be saved as one page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self, SupportsIndex, TypeVar, overload

from mha_lab.view.fitting import Showable
from mha_lab.view.shown import Shown, show

M = TypeVar("M", bound=Showable)


class Gallery(list[M]):
    """A list in every respect, which a notebook shows as an interactive view.

    Args:
        maps: What it holds at first.
        title: What to call where the maps come from; None leaves it to the maps.
    """

    def __init__(self, maps: Iterable[M] = (), *, title: str | None = None) -> None:
        super().__init__(maps)
        self.title = title

    @overload
    def __getitem__(self, index: SupportsIndex) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: SupportsIndex | slice) -> M | Self:
        """One map, or several as a list of this kind."""
        if isinstance(index, slice):
            return type(self)(super().__getitem__(index), title=self.title)
        return super().__getitem__(index)

    def __add__(self, other: list[Any]) -> Self:  # type: ignore[override]
        """The maps of both, as a list of this kind."""
        return type(self)([*self, *other], title=self.title)

    def copy(self) -> Self:
        """The same maps in a list of their own."""
        return self[:]

    def show(self, **options: Any) -> Shown:
        """Show the maps, alone or with others; see :func:`mha_lab.view.shown.show`.

        Args:
            options: Those of ``show``: ``before=``, ``after=``, ``view=``, ``height=``, ...
        """
        return show(self, **options)

    def save(self, path: str | Path, **options: Any) -> Path:
        """Write one self-contained page that needs neither network nor Python.

        Args:
            path: Ends in .html.
            options: Those of ``show``.

        Returns:
            The path.

        Raises:
            ValueError: If the path ends otherwise, or there is nothing to show.
            FileNotFoundError: If its folder does not exist.
        """
        return self.show(**options).save(path)

    def _repr_html_(self) -> str | None:
        """What notebooks show; an empty list is shown as any list is."""
        return self.show()._repr_html_() if self else None
