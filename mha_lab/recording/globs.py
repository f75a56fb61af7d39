"""Globs that choose modules by path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase


def matches(path: str, glob: str, *, anywhere: bool = True) -> bool:
    """Whether a glob matches a module path, or, anywhere, what follows one of its dots.

    >>> matches("model.encoder.layers.0", "encoder.layers.*"), matches("encoder", "coder")
    (True, False)
    """
    return fnmatchcase(path, glob) or (anywhere and fnmatchcase(path, f"*.{glob}"))


def matches_within(path: str, globs: Sequence[str]) -> bool:
    """Whether a module, or a module that it lies in, matches any of the globs; no globs match all.

    >>> matches_within("encoder.layers.0.self_attn", ["layers.0"])
    True
    """
    parts = path.split(".")
    parents = [".".join(parts[: end + 1]) for end in range(len(parts))]
    return not globs or any(matches(parent, glob) for parent in parents for glob in globs)


def check_globs(argument: str, value: str | Sequence[str] | None) -> list[str]:
    """Give globs as a list.

    Raises:
        TypeError: If they are neither a str nor a list of str.
    """
    globs = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(globs, Sequence) or not all(isinstance(glob, str) for glob in globs):
        raise TypeError(f"{argument}={value!r} must be a glob of module paths or a list of them")
    return list(globs)


def refuse_unmatched(argument: str, globs: Sequence[str], paths: Iterable[str]) -> None:
    """Refuse a glob that chooses nothing.

    Raises:
        ValueError: If a glob matches none of the paths.
    """
    paths = [path for path in paths if path]
    for glob in globs:
        if not any(matches(path, glob) for path in paths):
            some = ", ".join(paths[:8]) + (", ..." if len(paths) > 8 else "")
            raise ValueError(
                f"{argument}={glob!r} matches no module of the model; its modules are {some}"
            )
