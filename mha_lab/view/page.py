"""One self-contained page that shows maps: the tab's own scripts, with the data inside.

Offline and without a server: scripts and style lie in the page, and each map's codes as base64 of
what zlib made of them, to be unpacked when they are first looked at.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mha_lab.view.bundle import bundle, style
from mha_lab.view.header import Header


class Part(NamedTuple):
    """One map at one step of one run.

    Attributes:
        run: Where it comes from.
        tag: What tells it from the run's other maps.
        name: The module's path.
        step: The training step.
        wall_time: Seconds since 1970.
        header: As :meth:`mha_lab.view.header.Header.to_json` writes it.
        packed: The codes, compressed by zlib.
    """

    run: str
    tag: str
    name: str
    step: int
    wall_time: float
    header: bytes
    packed: bytes


_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript>This page shows attention maps, and needs JavaScript for it.</noscript>
<script type="application/json" id="about">{about}</script>
{parts}
<script>{script}</script>
</body>
</html>
"""


def page(
    parts: Sequence[Part],
    *,
    title: str = "Attention",
    state: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """The page as HTML.

    Args:
        parts: The maps, those of a run in the model's order.
        title: The page's title.
        state: What is chosen at first, in the words of the page's address.
        notes: Sentences that a reader must know, as which samples were left out.
    """
    about = _about(parts) | {"state": dict(state or {}), "notes": list(notes)}
    return _TEMPLATE.format(
        title=html.escape(title.encode("utf-8", "replace").decode("utf-8")),
        style=style(),
        # Nothing that a token holds may end the script element.
        about=json.dumps(about, separators=(",", ":")).replace("<", "\\u003c"),
        parts="\n".join(
            f'<script type="text/plain" id="part{i}">{_text(part.packed)}</script>'
            for i, part in enumerate(parts)
        ),
        script=bundle("inline.js"),
    )


def cell(content: str, height: int) -> str:
    """A page as a notebook's cell shows it: in a frame, so that neither styles the other."""
    inside = content.replace("&", "&amp;").replace('"', "&quot;")
    style = f"width:100%;height:{height}px;border:0;display:block"
    return (
        f'<iframe title="Attention maps" style="{style}" allow="fullscreen; clipboard-write" '
        f'srcdoc="{inside}"></iframe>'
    )


def _text(packed: bytes) -> str:
    return base64.b64encode(packed).decode("ascii")


def _about(parts: Iterable[Part]) -> dict[str, Any]:
    """Runs, their maps and each map's steps; what headers share is written once."""
    shared: dict[str, int] = {}

    def place(value: Any) -> int | None:
        if value is None:
            return None
        return shared.setdefault(json.dumps(value), len(shared))

    runs: dict[str, dict[str, dict[str, Any]]] = {}
    headers = []
    for i, part in enumerate(parts):
        content = Header.from_json(part.header).content()
        if content["key_tokens"] == "same":
            content["key_tokens"] = content["query_tokens"]
        for name in ("query_tokens", "key_tokens", "images"):
            content[name] = place(content[name])
        headers.append(content)
        one = runs.setdefault(part.run, {}).setdefault(
            part.tag,
            {"tag": part.tag, "name": part.name, "steps": [], "wall_times": [], "parts": []},
        )
        one["steps"].append(part.step)
        one["wall_times"].append(part.wall_time)
        one["parts"].append(i)
    return {
        "runs": [{"run": run, "maps": list(maps.values())} for run, maps in runs.items()],
        "headers": headers,
        "shared": [json.loads(text) for text in shared],
    }
