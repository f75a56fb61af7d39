"""A sweep from plan to answer."""

import sys
from collections import Counter

import optuna
from rich.console import Console

from mha_lab import config
from mha_lab.errors import UserError
from mha_lab.sweeping import hparams
from mha_lab.sweeping.check import check
from mha_lab.sweeping.display import Display
from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.processes import more_processes
from mha_lab.sweeping.recipe import write_recipe
from mha_lab.sweeping.results import Result, best, number, rank, reached, show, write_csv
from mha_lab.sweeping.run_trial import Train
from mha_lab.sweeping.slots import REASON, Slots
from mha_lab.sweeping.space import Space, override, read_space
from mha_lab.sweeping.storage import FAULTS
from mha_lab.sweeping.study import open_folder
from mha_lab.sweeping.worker import join, work
from mha_lab.terminal import relative, setting, wrapped


def sweep(plan: Plan, *, train: Train | None = None) -> int:
    """Run a sweep to its end, or join it, and write what it found.

    Args:
        plan: the sweep.
        train: a stand-in for ``mha_lab.run.train``.

    Returns:
        The exit code: 0, or 1 where no trial was completed.

    Raises:
        UserError: the plan contradicts itself, the config tree, or a study that exists.
    """
    space = read_space(plan.space)
    base = config.compose(plan.overrides, run_dir="RUN")
    size = check(plan, space, base)
    console = Console()
    try:
        open_folder(plan, base)
        slots = join(plan, base, size)
        hparams.write_experiment(plan, space)
        opening = wrapped(_opening_line(plan, size), console.file, indent=2)
        console.print(f"{opening}\n{relative(plan.folder)}", highlight=False, soft_wrap=True)
        with more_processes(plan, size), Display(plan, slots, console):
            work(plan, space, slots, train=train)
        return conclude(plan, space, slots, console)
    except FAULTS as error:
        raise UserError(
            f"the storage of the sweep cannot be reached any more ({config.first_line(error)}); "
            "the same command goes on with it"
        ) from error


def conclude(plan: Plan, space: Space, slots: Slots, console: Console) -> int:
    """Write table, best config and pictures; say where they are."""
    results = rank(plan, slots.trials())
    write_csv(plan, results)
    print()
    show(plan, results)
    winner = best(results)
    if winner is None:
        counts = Counter(result.state for result in results)
        ended = ", ".join(f"{count} {state}" for state, count in counts.items())
        reason = results[0].attribute(REASON)
        text = f"no trial was completed ({ended}); trial {results[0].trial.number}: {reason}"
        console.print(wrapped(text, console.file, indent=2), highlight=False, soft_wrap=True)
        print(relative(plan.folder))
        return 1
    _draw(plan, space, slots.study, results)
    print("", *_closing_lines(plan, winner), relative(plan.folder), sep="\n")
    return 0


def _opening_line(plan: Plan, size: int) -> str:
    settings = plan.settings
    pruner = "" if settings.pruner == "none" else f", pruned by {settings.pruner}"
    return (
        f"sweep {plan.name}: {size} trials over {', '.join(plan.space)} by {settings.sampler}"
        f"{pruner}"
    )


def _draw(plan: Plan, space: Space, study: optuna.Study, results: list[Result]) -> None:
    # Imported here: a worker that only joins has no use for matplotlib until the end.
    from mha_lab.sweeping.plot_curves import draw_curves
    from mha_lab.sweeping.plot_importance import draw_importance
    from mha_lab.sweeping.plot_parallel import draw_parallel
    from mha_lab.sweeping.plot_parts import save

    save(draw_parallel(plan, space, results), plan.folder / "parallel_coordinates.png")
    save(draw_importance(plan, space, study), plan.folder / "parameter_importance.png")
    save(draw_curves(plan, results), plan.folder / "learning_curves.png")


def _closing_lines(plan: Plan, best: Result) -> list[str]:
    params = [override(key, value) for key, value in best.trial.params.items()]
    short = " ".join(f"{key}={number(value)}" for key, value in best.trial.params.items())
    found = ", ".join(f"{name} {reached(name, value)}" for name, value in best.objectives.items())
    title = f"trial {best.trial.number} of sweep {plan.name}: {found}"
    command = write_recipe(plan.folder, [*plan.overrides, *params], title)
    lines = [
        ("best", f"{title} ({short})"),
        ("train it", command),  # it and the next are to be copied: a terminal alone may break them
        ("dashboard", f"python -m mha_lab dashboard {setting('logdir', plan.folder)}"),
        ("sweep folder", ""),
    ]
    best_line, *others = (f"{name:<14} {text}".rstrip() for name, text in lines)
    return [wrapped(best_line, sys.stdout, indent=15), *others]
