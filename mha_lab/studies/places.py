"""Where studies are looked for.

In ``experiments/`` of the working folder, then among those that came with the project (its
checkout, or the installed package); or in the folder that is named.
"""

from pathlib import Path

from mha_lab.errors import UserError, nearest

FILE = "study.yaml"
FOLDER = "experiments"
_PACKAGE = Path(__file__).parent.parent


def studies() -> dict[str, Path]:
    """Every study by its name, with its folder; where two have one name, the nearer counts."""
    found: dict[str, Path] = {}
    for place in (Path(FOLDER), _PACKAGE.parent / FOLDER, _PACKAGE / FOLDER):
        for file in sorted(place.glob(f"*/{FILE}")):
            found.setdefault(file.parent.name, file.parent)
    return dict(sorted(found.items()))


def find(name: str) -> Path:
    """The folder of a study.

    Args:
        name: of a study, or its folder.

    Raises:
        UserError: there is none.
    """
    known = studies()
    if name in known:
        return known[name]
    if (Path(name) / FILE).is_file():
        return Path(name)
    raise UserError(
        f"there is no study {name!r}{nearest(name, known)} (there are: {', '.join(known) or 'none'}"
        f"; or a folder that holds {FILE})"
    )


def is_installed(folder: Path) -> bool:
    """Whether a study lies inside the installed package, where no report belongs."""
    return folder.resolve().is_relative_to((_PACKAGE / FOLDER).resolve())
