"""The Attention tab of TensorBoard: what TensorBoard loads, and which routes there are.

TensorBoard finds :class:`AttentionPluginLoader` through the entry point ``tensorboard_plugins`` and
serves the routes below ``/data/plugin/mha_lab_attention``. Nothing is written, torch is not
imported, and what a request names must exist in TensorBoard's data; in the file system only the
event files of a run that lies there are looked at, for restarts.
"""

from __future__ import annotations

import mimetypes
from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from tensorboard.plugins import base_plugin
from werkzeug import Request, Response

from mha_lab.tensorboard.answers import Answers, respond
from mha_lab.tensorboard.event_files import PLUGIN_NAME
from mha_lab.tensorboard.parameters import BadRequestError, shown
from mha_lab.tensorboard.series import AttentionSeries
from mha_lab.view.bundle import STATIC, bundled_module

_PAGE = "/static/page_in_one.js"

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class AttentionPluginLoader(base_plugin.TBLoader):  # type: ignore[misc]
    """Create the plugin, and have TensorBoard keep every step of an attention map.

    TensorBoard thins a series to 10 steps unless its ``--samples_per_plugin`` says otherwise. A
    choice that the user made there is kept.
    """

    def fix_flags(self, flags: Namespace) -> None:
        """Ask for all steps of this plugin's series."""
        flags.samples_per_plugin = {PLUGIN_NAME: 0, **(flags.samples_per_plugin or {})}

    def load(self, context: base_plugin.TBContext) -> AttentionPlugin:
        """Create the plugin."""
        return AttentionPlugin(context)


class AttentionPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """Serve the Attention tab's page and what it asks for."""

    plugin_name = PLUGIN_NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        logdir = Path(context.logdir) if context.logdir else None
        series = AttentionSeries(context.data_provider, logdir, context.multiplexer)
        self._answers = Answers(series)

    def get_plugin_apps(self) -> dict[str, WsgiApp]:
        """Each route and what answers it. A file can be served only if it lies in static/ now."""
        files = {
            f"/static/{path.relative_to(STATIC).as_posix()}": _app(partial(_serve_file, path))
            for path in STATIC.rglob("*")
            if path.is_file()
        }
        return files | {
            _PAGE: _app(_serve_page),
            "/start": _app(self._answers.start),
            "/runs": _app(self._answers.runs),
            "/maps": _app(self._answers.maps),
            "/map": _app(self._answers.map),
            "/several": _app(self._answers.several),
            "/scores": _app(self._answers.scores),
        }

    def is_active(self) -> bool:
        """False: TensorBoard itself looks whether there is data of this plugin's name."""
        return False

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """The tab's name and where its page begins."""
        return base_plugin.FrontendMetadata(es_module_path=_PAGE, tab_name="Attention")


def _app(answer: Callable[[Request], Response]) -> WsgiApp:
    """A WSGI application that answers GET, and turns refusals into their status and sentence."""

    @Request.application
    def application(request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            sentence = f"Method {shown(request.method)} is not allowed; use GET."
            return respond(
                request, sentence, "text/plain", code=405, headers=[("Allow", "GET, HEAD")]
            )
        try:
            return answer(request)
        except BadRequestError as error:
            return respond(request, str(error), "text/plain", code=error.status)

    result: WsgiApp = application
    return result


def _serve_page(request: Request) -> Response:
    """The page as one module: a browser asks for 60 modules level by level, which takes time."""
    return respond(request, bundled_module("index.js").encode(), "text/javascript")


def _serve_file(path: Path, request: Request) -> Response:
    """One of the page's own files."""
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if path.suffix == ".js":
        kind = "text/javascript"  # some systems' tables say otherwise, and modules need it
    return respond(request, path.read_bytes(), kind)
