"""Hold options to the contract that the harness relies on: every check by name.

Usage:
  python -m mha_lab check attention=custom                  one option
  python -m mha_lab check attention=custom position=learned task=copy
  python -m mha_lab check attention/weighting=sparsemax     a part, in attention=composed
  python -m mha_lab check model=decoder attention=linear    a model, and its attention
  python -m mha_lab check position=learned position.max_length=7   with values of your own
  python -m mha_lab check attention=mine --config-dir DIR   an option outside of the package

Exit code 1 where a check fails. From Python: mha_lab.testing.check_attention(MyAttention).
"""

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mha_lab.errors import UserError
from mha_lab.own_code import place_of

if TYPE_CHECKING:
    from omegaconf import DictConfig

_CHECKED = ("attention", "position", "model", "task")


def main(arguments: Sequence[str]) -> int:
    """Run the checks of every option that is named."""
    from mha_lab.config import compose

    keys = [word.lstrip("+").partition("=")[0] for word in arguments]
    roots = [key.split("/")[0] for key in keys]
    chosen = [name for name in _CHECKED if any(name == root for root in roots)]
    if not chosen:
        raise UserError(
            "check needs to know what: attention=NAME, attention/weighting=NAME (pattern and "
            "mixing alike), position=NAME, model=NAME or task=NAME (`python -m mha_lab list` has "
            "them)"
        )
    cfg = compose(arguments, run_dir="RUN")
    failed = sum(_check(name, cfg) for name in chosen)
    return 1 if failed else 0


def _check(name: str, cfg: "DictConfig") -> int:
    """Check one node of the config; tell how many checks failed."""
    from omegaconf import OmegaConf

    from mha_lab.config.targets import KINDS
    from mha_lab.config.validation import check_node
    from mha_lab.testing import attention_checks, model_checks, position_checks, task_checks

    checks = {
        "attention": attention_checks,
        "position": position_checks,
        "model": model_checks,
        "task": task_checks,
    }
    for node in ("attention", "position", "model") if name == "model" else (name,):
        check_node(node, cast(dict[str, Any], OmegaConf.to_container(cfg[node])), KINDS[node])
    subject = _subject(name, cfg)
    parts = [f"{key}={option}" for key, option in cfg.choices.items() if key.startswith(f"{name}/")]
    print(f"{name}={cfg.choices[name]}", *parts)
    started = time.perf_counter()
    outcomes = [_passes(check, subject) for check in checks[name]()]
    seconds = time.perf_counter() - started
    failed = outcomes.count(False)
    verdict = f"{failed} of {len(outcomes)} checks failed" if failed else "all checks passed"
    print(f"  {verdict}, {seconds:.1f} s")
    return failed


def _subject(name: str, cfg: "DictConfig") -> Any:
    """What the checks take: the task, or what makes the module."""
    from mha_lab.build import build, explained, model_maker
    from mha_lab.testing.model_cases import V

    if name != "model":
        return build(cfg, name)
    maker = model_maker(cfg)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is told before training is no fault
        explained("model", partial(maker, V))  # a choice that cannot be is told once
    return maker


def _passes(check: Callable[[Any], None], subject: Any) -> bool:
    """Run one check and print its line; below one that failed, why."""
    name = check.__name__.replace("_", " ")
    try:
        check(subject)
    except Exception as error:  # a subject may fail in any way
        reason = str(error) if isinstance(error, AssertionError) else f"{error!r}{_place(error)}"
        lines = reason.strip().splitlines() or [type(error).__name__]
        print(f"  FAILED  {name}", *(f"          {line}" for line in lines), sep="\n")
        return False
    print(f"  ok      {name}")
    return True


def _place(error: Exception) -> str:
    """The line of the subject that an error left, on a line of its own; nothing in libraries."""
    place = place_of(error, without=(Path(__file__), Path(__file__).parents[1] / "testing"))
    return place and f"\n{place}"
