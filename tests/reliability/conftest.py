"""Small runs that are broken off."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from break_off import SMALL

from mha_lab import config
from mha_lab.run import train


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's own cache of sequences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MHA_LAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nothing broke off; not to be changed."""
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    train(config.compose(SMALL, run_dir=folder))
    return folder
