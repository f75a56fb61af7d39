"""The page's modules as one script: some have no server to import from, others had 60 requests.

Every module becomes a function that is called once, in the order of their imports, and returns
what it exports. The modules are this folder's own, so the forms of ``import`` and ``export`` are
few: names in braces or ``* as name``, and declarations.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"

_IMPORT = re.compile(r'^import\s+(\{[^}]*\}|\* as \w+)\s+from\s+"([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_COMMENT = re.compile(r"^\s*(?:/\*.*?\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)


@cache
def bundle(entry: str) -> str:
    """One script that does what the module ``entry`` does, without comments and indentation."""
    body, _ = _joined(entry)
    # Nothing in it may end the script element that it stands in.
    return f'(() => {{"use strict";\n{body}}})();\n'.replace("</", "<\\/")


@cache
def bundled_module(entry: str) -> str:
    """One module that exports what the module ``entry`` does, to be imported from a server."""
    body, last = _joined(entry)
    exported = [name for _, name in _EXPORT.findall((STATIC / entry).read_text("utf-8"))]
    return f"{body}export const {{{', '.join(exported)}}} = {last};\n"


def _joined(entry: str) -> tuple[str, str]:
    """All modules as functions, and the name that the last of them, ``entry``, has there."""
    order: list[Path] = []
    _visit(STATIC / entry, order, ())
    names = {path: f"module{i}" for i, path in enumerate(order)}
    return "".join(_as_function(path, names) for path in order), names[order[-1]]


@cache
def style() -> str:
    """The page's style sheet."""
    return _COMMENT.sub("", (STATIC / "style.css").read_text("utf-8"))


def _visit(path: Path, order: list[Path], importing: tuple[Path, ...]) -> None:
    if path in importing:
        raise ValueError(f"{path.name} imports itself, by way of {importing[-1].name}")
    if path in order:
        return
    for _, source in _IMPORT.findall(path.read_text("utf-8")):
        _visit((path.parent / source).resolve(), order, (*importing, path))
    order.append(path)


def _as_function(path: Path, names: dict[Path, str]) -> str:
    text = path.read_text("utf-8")

    def binding(found: re.Match[str]) -> str:
        what, source = found.groups()
        module = names[(path.parent / source).resolve()]
        if what.startswith("*"):
            return f"const {what.removeprefix('* as ')} = {module};\n"
        return f"const {what.replace(' as ', ': ')} = {module};\n"

    exported = ", ".join(name for _, name in _EXPORT.findall(text))
    text = _EXPORT.sub(r"\1", _IMPORT.sub(binding, text))
    text = _INDENT.sub("", _COMMENT.sub("", text))
    return f"const {names[path]} = (() => {{\n{text}return {{{exported}}};\n}})();\n"
