"""TensorBoard's own web application with the Attention tab, without a server."""

from argparse import Namespace
from pathlib import Path

from tensorboard.backend.application import TensorBoardWSGIApp
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from werkzeug.test import Client, TestResponse

from mha_lab.tensorboard.plugin import AttentionPluginLoader

ROOT = "/data/plugin/mha_lab_attention"


class App:
    """A client of the application; ``reload()`` reads the event files again."""

    def __init__(self, logdir: Path) -> None:
        self.logdir = logdir
        self.multiplexer = EventMultiplexer(tensor_size_guidance={"mha_lab_attention": 0})
        self.reload()
        flags = Namespace(
            logdir=str(logdir),
            logdir_spec="",
            samples_per_plugin={},
            window_title="",
            path_prefix="",
            generic_data="true",
        )
        application = TensorBoardWSGIApp(
            flags,
            [AttentionPluginLoader()],
            data_provider=MultiplexerDataProvider(self.multiplexer, str(logdir)),
            deprecated_multiplexer=self.multiplexer,
        )
        self.client = Client(application)

    def reload(self) -> None:
        self.multiplexer.AddRunsFromDirectory(str(self.logdir))
        self.multiplexer.Reload()

    def get(self, route: str, **parameters: object) -> TestResponse:
        return self.client.get(ROOT + route, query_string=parameters)
