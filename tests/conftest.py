"""What every test shares."""

import os
import signal
import sys
from collections.abc import Iterator

import pytest
import torch


def pytest_configure() -> None:
    """Compute as a processor that oneDNN does not know, where tests/processors.py asks for it."""
    if os.environ.get("MHA_LAB_TEST_ONEDNN") == "0":
        torch.backends.mkldnn.set_flags(False)
    # A shell that starts tests in the background has them, and what they start, ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Every test starts from the same random state."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _compiled_anew() -> Iterator[None]:
    """What a test has compiled does not count towards the next one's limit of recompilations."""
    yield
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip GPU tests, with a reason, where there is no GPU."""
    if torch.cuda.is_available():
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device; none is present"))
