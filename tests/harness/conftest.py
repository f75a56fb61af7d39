"""Small runs for the tests of the harness."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small_runs import TINY

from mha_lab import cli


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's own cache of sequences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MHA_LAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def lab(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line in this process; gives exit code, stdout, stderr."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        try:
            code = cli.run([str(word) for word in words])
        except SystemExit as error:
            code = int(error.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run of the copy task; not to be changed."""
    folder = tmp_path_factory.mktemp("runs") / "trained"
    words = ["train", "task=copy", *TINY, "trainer.max_steps=10", f"hydra.run.dir={folder}"]
    assert cli.run(words) == 0
    return folder
