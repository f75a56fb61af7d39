"""Other people's viewers of attention, each from weights to a page."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch


def bertviz(weights: Sequence[Any], tokens: list[str]) -> str:
    """Bertviz' model view (Vig, 2019, https://arxiv.org/abs/1906.05714)."""
    from bertviz import model_view

    return str(model_view(list(weights), tokens, html_action="return").data)


def inspectus(weights: Sequence[Any], tokens: list[str]) -> str:
    """Inspectus (labmlai), which only displays; what it displays is caught."""
    from inspectus import attention

    shown: list[Any] = []
    with patch("IPython.display.display", shown.append):
        attention(list(weights), tokens, tokens)
    return "".join(str(one.data) for one in shown)


def answer_from(page: Any, folder: Path) -> None:
    """Answer what a page asks the network for with the file of that name below a folder."""
    files = {path.name: path for path in folder.rglob("*.js")}

    def answer(route: Any) -> None:
        path = files.get(route.request.url.rsplit("/", 1)[-1])
        if path is None:
            route.abort()
        else:
            route.fulfill(path=path, content_type="text/javascript")

    page.route(re.compile("^https?://"), answer)


RIVALS: dict[str, Callable[[Sequence[Any], list[str]], str]] = {
    "bertviz": bertviz,
    "inspectus": inspectus,
}
"""By the name under which each is installed."""
