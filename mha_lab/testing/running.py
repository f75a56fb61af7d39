"""What the checks share: comparing with a sentence, and running a list of them."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

Check = Callable[[Any], None]


def same(actual: Tensor, expected: Tensor, sentence: str, *, atol: float = 1e-5) -> None:
    """Assert that two tensors agree within ``atol``, in shape and dtype too.

    Raises:
        AssertionError: with the sentence, and where they differ.
    """
    torch.testing.assert_close(
        actual, expected, atol=atol, rtol=10 * atol, msg=lambda detail: f"{sentence}\n{detail}"
    )


def require(is_right: bool, sentence: str) -> None:
    """Assert, also under ``python -O``.

    Raises:
        AssertionError: with the sentence.
    """
    if not is_right:
        raise AssertionError(sentence)


def run(checks: Iterable[Check], subject: Any) -> None:
    """Run every check and report all that fail together.

    Raises:
        AssertionError: naming each failed check and its reason.
    """
    failed = []
    for check in checks:
        try:
            check(subject)
        except Exception as error:  # a subject may fail in any way
            reason = str(error) if isinstance(error, AssertionError) else repr(error)
            failed.append(f"{check.__name__}: {reason}")
    if failed:
        noun = "check" if len(failed) == 1 else "checks"
        raise AssertionError(f"{len(failed)} {noun} failed:\n\n" + "\n\n".join(failed))
