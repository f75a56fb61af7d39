"""Ask a question of many runs, as a published finding does, and judge its claims by the numbers.

Usage:
  python -m mha_lab study --list             every study: its state, and what it found
  python -m mha_lab study NAME               the whole study; it goes on where it stopped
  python -m mha_lab study NAME --quick       the effect in some minutes, kept apart
  python -m mha_lab study FOLDER             a study of your own: a folder that holds study.yaml
  python -m mha_lab study NAME hydra/launcher=joblib hydra.launcher.n_jobs=2
                                             on any of Hydra's launchers
  python -m mha_lab study NAME KEY=VALUE     changed by an override: another study, kept apart

Runs lie in outputs/studies/NAME. Of the whole study the report, with table, figure and finding,
is written beside study.yaml, of all others into outputs/studies/. trust=MODULE says that a
study may name code that is not this project's. docs/studies.md tells how to add one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mha_lab.arguments import split
from mha_lab.config import trust
from mha_lab.errors import UserError
from mha_lab.terminal import relative, show_table

if TYPE_CHECKING:
    from mha_lab.studies.study import Study

GOES_ON = True  # after an interruption, by the same command
_OPTIONS = ("--quick", "--list")


def main(arguments: Sequence[str]) -> int:
    """Run a study, or list them."""
    settings, words = split(arguments, (trust.SETTING,))
    trusted = trust.modules(settings.get(trust.SETTING))
    options = [word for word in words if word.startswith("-")]
    for option in options:
        if option not in _OPTIONS:
            raise UserError(f"unknown option {option!r} (there are: {', '.join(_OPTIONS)})")
    words = [word for word in words if not word.startswith("-")]
    if "--list" in options:
        return _list(words)
    names = [word for word in words if "=" not in word]
    if len(names) != 1:
        raise UserError("study needs the name of one study: study NAME (study --list names them)")
    overrides = [word for word in words if "=" in word]
    return _run(names[0], overrides, is_quick="--quick" in options, trusted=trusted)


def _list(words: Sequence[str]) -> int:
    from mha_lab.studies.places import studies
    from mha_lab.studies.reading import read
    from mha_lab.studies.running import state

    if words:
        raise UserError("study --list takes nothing else")
    rows = []
    for name, folder in studies().items():
        study = read(folder)
        minutes = f"{study.spec.minutes:g}" if study.spec.minutes else "?"
        rows.append((name, state(study), state(study.quick()), minutes, study.spec.title))
    show_table(("study", "state", "quick form", "minutes", "title"), rows)
    return 0


def _run(name: str, overrides: Sequence[str], *, is_quick: bool, trusted: Sequence[str]) -> int:
    from mha_lab.studies.places import find
    from mha_lab.studies.reading import read
    from mha_lab.studies.running import run_study

    study = read(find(name), trusted=trusted)
    launcher = [word for word in overrides if word.lstrip("+~").startswith(("hydra/", "hydra."))]
    own = [word for word in overrides if word not in launcher]
    if is_quick:
        study = study.quick()
    if own:
        study = study.changed(own)
    found = run_study(study, launcher=launcher, trusted=trusted)
    if found is None:
        print(relative(study.runs))
        return 1
    _show(study, found)
    return 0


def _show(study: "Study", found: dict[str, Any]) -> None:
    from mha_lab.studies.finding import claims_table
    from mha_lab.studies.running import rows_of
    from mha_lab.studies.tables import table

    shown = table(study, rows_of(study))
    show_table(shown.columns, shown.rows, title=found["title"], numeric=shown.numeric)
    print()
    claims = claims_table(found)
    show_table(claims.columns, claims.rows)
    print(f"\n{found['verdict']}, in {found['minutes']} minutes of the processor")
    print(relative(study.report))
