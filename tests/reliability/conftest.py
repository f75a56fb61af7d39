"""Small runs that are broken off."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mha_lab import config
from mha_lab.run import train

SMALL = (
    "task=copy", "model.embed_dim=6", "model.num_heads=2", "model.dropout=0.2",
    "data.batch_size=3", "data.validation_size=5", "data.test_size=7", "trainer=cpu",
    "trainer.max_steps=13", "trainer.val_check_interval=5", "trainer.log_every_n_steps=1",
    "trainer.enable_progress_bar=false", "task.max_length=5",
)  # fmt: skip


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
