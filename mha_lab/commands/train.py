"""Train one run, or many.

Usage:
  python -m mha_lab train +experiment=copy                    a recipe: every task has one
  python -m mha_lab train task=sort attention=builtin seed=3  any option, any value
  python -m mha_lab train -m +experiment=copy seed=0,1,2      a sweep, each run in its own folder
  python -m mha_lab train resume=FOLDER                       go on from the last checkpoint
  python -m mha_lab train resume=latest                       with the newest run below outputs/

Options are config groups (attention, position, model, task, optimizer, trainer, callbacks,
logger): `python -m mha_lab list` names them. Values are dotted keys, e.g. model.embed_dim=128,
model.num_layers=2, optimizer.lr=1e-3, data.batch_size=32, trainer.max_steps=500, compile=true.
trust=MODULE says that a run or a recipe of a folder may name code that is not this project's.
`python -m mha_lab train --cfg job` prints the whole config; hydra.run.dir=FOLDER chooses where
the run is kept.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mha_lab import trust
from mha_lab.arguments import split
from mha_lab.commands.which_run import which_run
from mha_lab.errors import UserError, nearest
from mha_lab.terminal import relative, setting

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig

    from mha_lab.commands.multirun_display import MultirunDisplay

_DOTTED_RESUME = "resume="
_HYDRA_OPTIONS = (
    "-m", "--multirun", "-c", "--cfg", "--resolve", "-p", "--package", "-r", "--run", "-i",
    "--info", "-cn", "--config-name", "-cd", "--config-dir", "-sc",
    "--shell-completion", "--hydra-help",
)  # fmt: skip
_OPTIONS_WITH_VALUE = (
    "-c", "--cfg", "-p", "--package", "-i", "--info", "-cn", "--config-name", "-cd", "--config-dir",
)  # fmt: skip
_outcome: dict[str, Any] = {}  # what the job of a single run left for main
_displays: list["MultirunDisplay"] = []  # of the multirun under way, in this process


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


def _resume(resumed: list[str], overrides: list[str], trusted: Sequence[str]) -> int:
    from mha_lab.config import load_run

    if len(resumed) > 1 or any(word in ("-m", "--multirun") for word in overrides):
        raise UserError("resume=FOLDER goes on with one run: give it once, and without -m")
    folder = which_run("resume", resumed[0].removeprefix(_DOTTED_RESUME), with_weights=False)
    cfg = load_run(folder, overrides, trusted=trusted)
    return _train_and_tell(cfg, resume=True)


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
    from mha_lab.words import check_choices, parse_words

    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us, who explain them in a sentence
    _outcome.clear()
    RunGuard.forget()
    words = sys.argv
    options, rest = _options_and_words(arguments)
    items = parse_words(rest)
    check_choices(items, groups())
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
            main(_job)()
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(explain(error, arguments)) from error
    except SystemExit:
        if RunGuard.refusal is not None:
            raise RunGuard.refusal from None
        raise
    finally:
        sys.argv = words
    if RunGuard.sweep_folder is not None:
        from mha_lab.commands.multirun_table import show

        return show(RunGuard.sweep_folder)
    if "error" in _outcome:
        raise _outcome["error"]
    return int(_outcome.get("code", 0))


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
    from mha_lab.validation import validate

    ours = [word for word in words if not word.lstrip("+~").startswith("hydra")]
    validate(compose(ours, run_dir="RUN"))


@contextmanager
def _display(items: Sequence["Override"]) -> Iterator[None]:
    """The terminal of a multirun."""
    from mha_lab.commands.multirun_display import MultirunDisplay, count_runs

    varying = [item.key_or_group for item in items if item.is_sweep_override()]
    is_here = not any(item.key_or_group == "hydra/launcher" for item in items)
    display = MultirunDisplay(count_runs(items), varying, is_here=is_here)
    _displays.append(display)
    try:
        with display.shown():
            yield
    finally:
        _displays.remove(display)


def _options_and_words(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Hydra's options, each with its value, and all other words."""
    options: list[str] = []
    words: list[str] = []
    takes_value = False
    for word in arguments:
        (options if word.startswith("-") or takes_value else words).append(word)
        takes_value = word in _OPTIONS_WITH_VALUE
    return options, words


def _job(cfg: "DictConfig") -> None:
    """One run, as Hydra's launchers call it, in this process or in another."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from mha_lab.config import finish

    overrides = list(HydraConfig.get().overrides.task)
    is_multirun = HydraConfig.get().mode == RunMode.MULTIRUN
    # DistributedDataParallel starts its other processes with this command line.
    words, sys.argv = sys.argv, [sys.argv[0], "train", *overrides]
    folder = Path(HydraConfig.get().runtime.output_dir)
    _forget_places(folder)
    try:
        if is_multirun:
            _outcome["code"] = _train_among(finish(cfg), overrides)
        else:
            _outcome["code"] = _train_and_tell(finish(cfg))
        if is_multirun and _outcome["code"] > 128:
            # A signal ends the multirun, not one run of it.
            raise KeyboardInterrupt
    except UserError as error:
        if not is_multirun:
            _outcome["error"] = error
            _leave_nothing(folder)
            return
        # One bad combination must not end the others.
        _record_failure(folder, overrides, str(error), code=2)
    except Exception as error:
        if not is_multirun:
            raise
        _record_failure(folder, overrides, f"{type(error).__name__}: {error}", code=1)
    finally:
        sys.argv = words


def _train_among(cfg: "DictConfig", overrides: Sequence[str]) -> int:
    """Train one of many runs: the multirun tells of it."""
    from mha_lab.commands.multirun_display import MultirunDisplay

    # A launcher may run jobs in processes of its own, which have no bar.
    display = _displays[-1] if _displays else MultirunDisplay(is_here=False)
    display.begins(overrides)
    summary, code = _train(cfg, among=display.bars, says_what=False)
    display.ends(Path(cfg.run_dir), summary)
    return code


def _forget_places(folder: Path) -> None:
    """Take the paths of this machine out of Hydra's notes: a run can be moved, or given away."""
    import yaml

    from mha_lab.training.run_folder import write_atomically

    file = folder / ".hydra" / "hydra.yaml"
    if file.is_file():
        notes = yaml.safe_load(file.read_text(encoding="utf-8"))["hydra"]
        runtime = {key: notes["runtime"][key] for key in ("version", "choices")}
        kept = {"hydra": {"runtime": runtime, "job": {"num": notes["job"].get("num")}}}
        write_atomically(file, yaml.safe_dump(kept, sort_keys=False))


def _leave_nothing(folder: Path) -> None:
    """Remove what Hydra has noted of a run that was refused, or it would count as unfinished."""
    from mha_lab.commands.hydra_callback import RunGuard

    folder = folder.absolute()
    if (folder / "config.yaml").exists():
        return  # it was refused later
    shutil.rmtree(folder / ".hydra", ignore_errors=True)
    with contextlib.suppress(OSError):  # whatever else lies there stays
        (folder / "train.log").unlink(missing_ok=True)
        for made in (folder, *folder.parents):
            if made == RunGuard.was_there:
                break
            made.rmdir()


def _record_failure(folder: Path, overrides: list[str], reason: str, *, code: int) -> None:
    from mha_lab.commands.hydra_callback import RunGuard
    from mha_lab.training.run_folder import write_summary

    if reason not in RunGuard.told:
        print(f"mha_lab: {' '.join(overrides)}: {reason}", file=sys.stderr)
    summary = {"status": "failed", "reason": reason, "exit_code": code, "overrides": overrides}
    write_summary(folder, summary)
    for display in _displays:
        display.ends(folder, {})


def _train_and_tell(cfg: "DictConfig", *, resume: bool = False) -> int:
    """Train and print the short summary; the run's folder is the last line."""
    summary, code = _train(cfg, resume=resume)
    if summary and int(os.environ.get("LOCAL_RANK", "0")) == 0:
        print(summary_text(summary, Path(cfg.run_dir)))
    return code


def _train(cfg: "DictConfig", **how: Any) -> tuple[dict[str, Any], int]:
    """Train; the summary, which is empty where training diverged, and the exit code."""
    from mha_lab.quick_start import import_lightning

    import_lightning()
    from mha_lab.run import train
    from mha_lab.training.module import TrainingDiverged

    try:
        summary = train(cfg, **how)
    except TrainingDiverged as error:
        print(f"mha_lab: {error}", file=sys.stderr)
        return {}, 1
    return summary, int(summary.get("exit_code", 0))


def _time_text(summary: dict[str, Any]) -> str:
    """This call's time; that of training is the whole run's, of which this call may be a part."""
    call, training = summary["wall_seconds"], summary["train_seconds"]
    if training <= call:
        return f"{call:.1f} s, of which training {training:.1f} s"
    return f"{call:.1f} s for this call; training took {training:.1f} s in the whole run"


def summary_text(summary: dict[str, Any], folder: Path) -> str:
    """The lines that end a run."""
    shown = relative(folder)
    if summary["status"] == "interrupted":
        return (
            f"\ninterrupted at step {summary['steps']}; go on with:\n"
            f"  python -m mha_lab train {setting('resume', folder)}\n{shown}"
        )
    lines = [
        ("test accuracy", f"{summary['test/sequence_accuracy']:.4f} of sequences, "
                          f"{summary['test/token_accuracy']:.4f} of tokens"),
        ("steps", f"{summary['steps']:,} ({summary['status']})"),
        ("time", _time_text(summary)),
        ("parameters", f"{summary['parameters']:,}"),
        ("dashboard", f"python -m mha_lab dashboard {setting('logdir', folder.parent)}"),
        ("run folder", ""),
    ]  # fmt: skip
    return "\n" + "\n".join(f"{name:<14} {text}".rstrip() for name, text in lines) + f"\n{shown}"
