"""Train one run, or many.

Usage:
  python -m mha_lab train +experiment=copy                    a recipe: every task has one
  python -m mha_lab train task=sort attention=builtin seed=3  any option, any value
  python -m mha_lab train -m +experiment=copy seed=0,1,2      a sweep, each run in its own folder;
                                                              hydra.sweep.dir=FOLDER goes on with it
  python -m mha_lab train resume=FOLDER                       go on from the last checkpoint
  python -m mha_lab train resume=latest                       with the newest run below outputs/

Options are config groups (attention, position, model, task, optimizer, trainer, callbacks,
logger): `python -m mha_lab list` names them. Values are dotted keys, e.g. model.embed_dim=128,
model.num_layers=2, optimizer.lr=1e-3, data.batch_size=32, trainer.max_steps=500, compile=true.
trust=MODULE says that a run or a recipe of a folder may name code that is not this project's.
`python -m mha_lab train --cfg job` prints the whole config; hydra.run.dir=FOLDER chooses where
the run is kept.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from mha_lab.arguments import split
from mha_lab.commands.ending import train_and_tell
from mha_lab.commands.job import displays, outcome, run_job
from mha_lab.commands.which_run import which_run
from mha_lab.config import trust
from mha_lab.errors import UserError, nearest

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

_DOTTED_RESUME = "resume="
_HYDRA_OPTIONS = (
    "-m", "--multirun", "-c", "--cfg", "--resolve", "-p", "--package", "-r", "--run", "-i",
    "--info", "-cn", "--config-name", "-cd", "--config-dir", "-sc",
    "--shell-completion", "--hydra-help",
)  # fmt: skip
_WHERE_OPTIONS_LIE = {"-cd", "--config-dir"}
_OPTIONS_WITH_VALUE = (
    "-c", "--cfg", "-p", "--package", "-i", "--info", "-cn", "--config-name", "-cd", "--config-dir",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Run ``train``: resume a run, or hand the overrides to Hydra."""
    for word in arguments:
        if word.lstrip("+").startswith(("sweep=", "sweep.")):
            raise UserError(f"{word} belongs to another command: python -m mha_lab sweep {word}")
    _check_options(arguments)
    settings, arguments = split(arguments, (trust.SETTING,))
    trusted = trust.modules(settings.get(trust.SETTING))
    resumed = [word for word in arguments if word.startswith(_DOTTED_RESUME)]
    if resumed:
        return _resume(resumed, [word for word in arguments if word not in resumed], trusted)

    from mha_lab.commands.recipe_check import check_recipe
    from mha_lab.config import complete

    check_recipe(arguments, trusted)
    return _compose_and_train(complete(arguments))


def _check_options(arguments: Sequence[str]) -> None:
    """Refuse what Hydra would answer with its whole usage, or with a traceback."""
    options = [word.partition("=")[0] for word in arguments if word.startswith("-")]
    for option in options:
        if option not in _HYDRA_OPTIONS:
            raise UserError(
                f"unknown option {option!r}{nearest(option, _HYDRA_OPTIONS)} "
                "(settings have no dashes: trainer.max_steps=5)"
            )
    if {"-m", "--multirun"} & set(options) and {"-c", "--cfg"} & set(options):
        raise UserError("--cfg prints the config of one run: give it without -m")


def _resume(resumed: list[str], rest: list[str], trusted: Sequence[str]) -> int:
    from mha_lab.config import load_run

    if len(resumed) > 1 or any(word in ("-m", "--multirun") for word in rest):
        raise UserError("resume=FOLDER goes on with one run: give it once, and without -m")
    options, overrides = _options_and_words(rest)
    names = {option.partition("=")[0] for option in options if option.startswith("-")}
    if further := sorted(names - _WHERE_OPTIONS_LIE):  # which the run's config needs no more
        raise UserError(f"resume=FOLDER goes on with the run's own config: leave out {further[0]}")
    folder = which_run("resume", resumed[0].removeprefix(_DOTTED_RESUME), with_weights=False)
    cfg = load_run(folder, overrides, trusted=trusted)
    return train_and_tell(cfg, resume=True)


def _compose_and_train(arguments: Sequence[str]) -> int:
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from mha_lab.commands.hydra_callback import RunGuard
    from mha_lab.commands.multirun_names import run_dir_words, subdir_words
    from mha_lab.config import (
        config_folder,
        explain,
        groups,
        search_path,
        usual_run_dir,
        without_attention,
    )
    from mha_lab.config.words import check_choices, parse_words

    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us, who explain them in a sentence
    outcome.clear()
    RunGuard.forget()
    words = sys.argv
    options, rest = _options_and_words(arguments)
    items = parse_words(rest)
    check_choices(items, groups())
    _tell_what_has_no_meaning(items, without_attention())
    is_many = bool({"-m", "--multirun"} & set(options))
    if _prints_config(options):
        _refuse_what_training_would(rest)
    if is_many:
        names = subdir_words(rest, groups())
    else:
        names = run_dir_words(rest, usual_run_dir(), without_attention())
    # Hydra refuses words on both sides of an option.
    sys.argv = [words[0], *options, *search_path(), *rest, *names]
    main = hydra.main(version_base="1.3", config_path=str(config_folder()), config_name="train")
    try:
        with _display(items) if is_many else nullcontext():
            main(run_job)()
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(explain(error, arguments)) from error
    except SystemExit:
        if RunGuard.refusal is not None:
            raise RunGuard.refusal from None
        raise
    except KeyboardInterrupt:
        if RunGuard.sweep_folder is None:
            raise
        from mha_lab.commands.multirun_again import told_of_interrupt
        from mha_lab.commands.multirun_display import count_runs

        print(told_of_interrupt(arguments, RunGuard.sweep_folder, count_runs(items)))
        return max(130, int(outcome.get("code", 0)))
    finally:
        sys.argv = words
    if RunGuard.sweep_folder is not None:
        from mha_lab.commands.multirun_table import show

        return show(RunGuard.sweep_folder)
    if "error" in outcome:
        raise outcome["error"]
    return int(outcome.get("code", 0))


def _tell_what_has_no_meaning(items: "Sequence[Override]", without_attention: list[str]) -> None:
    """Say that attention and position were chosen for a model that has none.

    It is no refusal: a model without attention is a baseline, trained by the words of the others.
    """
    from mha_lab.terminal import tell

    model = next((item.value() for item in items if item.key_or_group == "model"), None)
    chosen = [
        item.input_line
        for item in items
        if item.key_or_group and item.key_or_group.split("/")[0] in ("attention", "position")
    ]
    if model in without_attention and chosen:
        tell(f"model={model} has no attention: {' and '.join(map(str, chosen))} will not count")


def _prints_config(options: Sequence[str]) -> bool:
    """Whether ``--cfg`` shall print a run's config, and that of this project."""
    names = {option.partition("=")[0] for option in options}
    return bool(names & {"-c", "--cfg"}) and not names & {"-cn", "--config-name"}


def _refuse_what_training_would(words: Sequence[str]) -> None:
    """Check each value: a config that is printed can be trained.

    Raises:
        UserError: the sentence of ``train`` without ``--cfg``.
    """
    from mha_lab.config import compose
    from mha_lab.quick_start import import_lightning

    import_lightning()
    from mha_lab.config.validation import validate

    ours = [word for word in words if not word.lstrip("+~").startswith("hydra")]
    validate(compose(ours, run_dir="RUN"))


@contextmanager
def _display(items: Sequence["Override"]) -> Iterator[None]:
    """The terminal of a multirun."""
    from mha_lab.commands.multirun_display import MultirunDisplay, count_runs

    varying = [item.key_or_group for item in items if item.is_sweep_override()]
    is_here = not any(item.key_or_group == "hydra/launcher" for item in items)
    display = MultirunDisplay(count_runs(items), varying, is_here=is_here)
    displays.append(display)
    try:
        with display.shown():
            yield
    finally:
        displays.remove(display)


def _options_and_words(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Hydra's options, each with its value, and all other words."""
    options: list[str] = []
    words: list[str] = []
    takes_value = False
    for word in arguments:
        (options if word.startswith("-") or takes_value else words).append(word)
        takes_value = word in _OPTIONS_WITH_VALUE
    return options, words
