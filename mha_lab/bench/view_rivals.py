"""Other people's viewers of attention, each from weights to a page."""

from collections.abc import Callable, Sequence
from typing import Any


def bertviz(weights: Sequence[Any], tokens: list[str]) -> str:
    """Bertviz' model view (Vig, 2019, https://arxiv.org/abs/1906.05714)."""
    from bertviz import model_view

    return str(model_view(list(weights), tokens, html_action="return").data)


def inspectus(weights: Sequence[Any], tokens: list[str]) -> str:
    """Inspectus (labmlai), which only displays; what it displays is caught."""
    from inspectus import attention
    from IPython.utils.capture import capture_output

    with capture_output() as shown:
        attention(list(weights), tokens, tokens)
    return "".join(output.data.get("text/html", "") for output in shown.outputs)


RIVALS: dict[str, Callable[[Sequence[Any], list[str]], str]] = {
    "bertviz": bertviz,
    "inspectus": inspectus,
}
"""By the name under which each is installed."""
