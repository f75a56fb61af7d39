"""Which command, then Hydra. Nothing heavy is imported before the command is known."""

import importlib
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from mha_lab.errors import MachineError, UserError, as_machine_error, nearest
from mha_lab.interrupts import were_interrupted
from mha_lab.terminal import tell, wrapped_help

COMMANDS = {
    "train": "train one run, or many with -m: train +experiment=copy",
    "evaluate": "test a run again, with any override: evaluate run=latest",
    "predict": 'print a run\'s outputs: predict run=latest "3 1 2" [figure=out.png]',
    "sweep": "search hyperparameters: sweep +experiment=sort sweep=optuna",
    "report": "compare runs: report outputs/... by=attention,position",
    "study": "ask a published finding's question again: study NAME --quick",
    "bench": "time this project: bench attention|zoo|loop|...",
    "new": "start an option of your own: new attention NAME [folder=DIR]",
    "check": "hold an option to the contract: check attention=NAME",
    "dashboard": "open TensorBoard on the runs: dashboard [logdir=outputs]",
    "list": "all variants, models, tasks, encodings and experiments, a line each",
}

USAGE = """\
mha_lab: the bench where attention mechanisms are tried, seen and compared.

Usage: python -m mha_lab COMMAND [overrides]

{commands}

Start with:
  python -m mha_lab train +experiment=copy
  python -m mha_lab dashboard
`python -m mha_lab COMMAND --help` says more about one command.
"""


def usage() -> str:
    """The text of ``--help``."""
    return USAGE.format(commands="\n".join(f"  {c:<10} {text}" for c, text in COMMANDS.items()))


_LAUNCHER_FAULTS = {
    'Could not detect "srun"': "hydra/launcher=submitit_slurm needs SLURM, and there is no srun "
    "here: hydra/launcher=submitit_local starts the same jobs on this machine",
    "object_store_memory must not be provided": "a Ray cluster runs here already: add "
    "+hydra.launcher.ray.init.object_store_memory=null",
}
"""What launchers say of a place that they cannot begin in, and what we say instead."""


def run(argv: Sequence[str]) -> int:
    """Run one command line.

    Args:
        argv: the words after ``python -m mha_lab``.

    Returns:
        The exit code: 0 well, 1 a run that failed, 2 a mistake in what was asked for.
    """
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(wrapped_help(usage(), sys.stdout))
        return 0
    if argv[0] == "--version":
        from mha_lab import __version__

        print(f"mha_lab {__version__}")
        return 0
    command, *arguments = argv
    logging.raiseExceptions = False  # a log that cannot be written has no traceback of its own
    try:
        if command not in COMMANDS:
            raise UserError(
                f"unknown command {command!r}{nearest(command, COMMANDS)} "
                f"(there are: {', '.join(COMMANDS)})"
            )
        module = importlib.import_module(f"mha_lab.commands.{command}")
        if any(word in ("-h", "--help") for word in arguments):
            # Most commands have one text; bench has one for each of what it measures.
            has_many = hasattr(module, "help_text")
            told = module.help_text(arguments) if has_many else module.__doc__ or ""
            print(wrapped_help(told, sys.stdout))
            return 0
        _check_words(arguments)
        _check_working_folder()
        folder, rest = _own_folder(arguments)
        with _with_folder(folder):
            # train's options are Hydra's, of which this is one.
            return int(module.main(arguments if command == "train" else rest))
    except UserError as error:
        return _tell(error, 2)
    except MachineError as error:
        return _tell(error, 1)
    except KeyboardInterrupt as error:
        return _tell_interrupted(argv, error)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        sys.stderr.close()
        return 0
    except Exception as error:
        if were_interrupted():  # of which a library made another error
            return _tell_interrupted(argv, error)
        fault = _launcher_fault(error) or _yaml_fault(error)
        if fault:
            return _tell(UserError(fault), 2, cause=error)
        known = as_machine_error(error)
        if known is None:
            raise
        return _tell(known, 1, cause=error)


def _tell_interrupted(argv: Sequence[str], error: BaseException) -> int:
    """Say so, and how to go on where the same command does."""
    print("mha_lab: interrupted", end="", file=sys.stderr)
    command = sys.modules.get(f"mha_lab.commands.{argv[0]}")
    goes_on = getattr(command, "GOES_ON", False)
    how = f"; go on with:\n  python -m mha_lab {shlex.join(argv)}" if goes_on else ""
    print(how, file=sys.stderr)
    return getattr(error, "exit_code", 130)


def _launcher_fault(error: Exception) -> str:
    """What to do about a launcher that cannot begin; empty where that is not what happened."""
    return next((told for sign, told in _LAUNCHER_FAULTS.items() if sign in str(error)), "")


def _yaml_fault(error: Exception) -> str:
    """Where a file is no YAML; empty where that is not what happened."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or problem is None:
        return ""
    return f"{mark.name!r} is no YAML: {problem} (line {mark.line + 1}, column {mark.column + 1})"


def _check_words(arguments: Sequence[str]) -> None:
    """Refuse halves of characters: what is written of them could not be read again."""
    for word in arguments:
        half = next((letter for letter in word if "\ud800" <= letter <= "\udfff"), None)
        if half is not None:
            raise UserError(
                f"{word!a} is no text: {half!a} is half of a character, or is not UTF-8"
            )


def _tell(error: Exception, code: int, cause: Exception | None = None) -> int:
    """Print an error's sentence; ``MHA_LAB_DEBUG=1`` shows where it came from as well."""
    if os.environ.get("MHA_LAB_DEBUG") == "1":
        import traceback

        traceback.print_exception(cause or error)
    sentence = " ".join(str(error).split()).encode(errors="backslashreplace").decode()
    tell(sentence)
    return code


def _check_working_folder() -> None:
    """A working folder that was deleted ends torch's libraries without a word of ours."""
    try:
        os.getcwd()
    except OSError as error:
        raise MachineError("the working folder is gone: cd into one that exists") from error


def _own_folder(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """What ``--config-dir`` names, and the other words."""
    rest, folder, words = [], None, iter(arguments)
    for word in words:
        name, is_pair, value = word.partition("=")
        if name not in ("--config-dir", "-cd"):
            rest.append(word)
            continue
        folder = value if is_pair else next(words, "")
        if not folder:
            raise UserError("--config-dir needs a folder: --config-dir FOLDER")
    return folder, rest


def _with_folder(folder: str | None) -> AbstractContextManager[None]:
    if folder is None:
        return nullcontext()
    from mha_lab.config import with_folder

    return with_folder(Path(folder))
