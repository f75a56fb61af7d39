"""Loggers that keep what they are given; they are called as those of Lightning are."""

import re
from importlib import import_module

import numpy as np


class Keeping:
    """Keeps metrics as (step, {name: number})."""

    name, version, save_dir = "kept", "0", None

    def __init__(self):
        super().__init__()
        self.metrics, self.images = [], []

    @property
    def experiment(self):
        return None

    def log_hyperparams(self, params):
        pass

    def log_metrics(self, metrics, step=None):
        ours = {name: value for name, value in metrics.items() if name.startswith("attention")}
        if ours:
            self.metrics.append((step, ours))


class LikeWandb(Keeping):
    """``WandbLogger``: ``log_image(key, images, step)``."""

    def log_image(self, key, images, step=None, **kwargs):
        assert isinstance(images, list)
        self.images += [(key, step, np.asarray(image)) for image in images]


class LikeMLflow(Keeping):
    """``MLFlowLogger``: its client's ``log_image``; names may hold few characters only."""

    run_id = "run-7"

    def __init__(self):
        super().__init__()
        self._client = Client(self)

    @property
    def experiment(self):
        return self._client

    def log_metrics(self, metrics, step=None):
        for name in metrics:
            check_name(name)
        super().log_metrics(metrics, step)


class Client:
    """``MlflowClient``."""

    def __init__(self, logger):
        self._logger = logger

    def log_image(self, run_id, image, artifact_file=None):
        assert run_id == self._logger.run_id
        check_name(artifact_file)
        self._logger.images.append((artifact_file, None, np.asarray(image)))


def check_name(name):
    """The rule of ``mlflow.utils.validation``."""
    if not re.fullmatch(r"[/\w.\- ]+", name):
        raise ValueError(f"Invalid name: {name!r}")


def make_logger(kind, package="pytorch_lightning"):
    """One of the above as a logger of this package."""
    base = import_module(package).loggers.logger.Logger
    return type(kind.__name__, (kind, base), {})()
