"""Start an option of your own: two files that work, pass their checks and are lint-clean.

Usage:
  python -m mha_lab new attention cosine              in the repository: beside the others
  python -m mha_lab new attention cosine folder=DIR   anywhere: DIR/cosine.py, DIR/configs/...

Kinds: {kinds}. What to do next is printed.
"""

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mha_lab.arguments import split
from mha_lab.errors import UserError, nearest
from mha_lab.terminal import relative

_PLACEHOLDER = "Template"


@dataclass(frozen=True)
class Kind:
    """What can be started: where its files lie, and how its class is called.

    Attributes:
        group: the config group, a folder of ``configs/``.
        package: the folder of ``mha_lab/``.
        suffix: of the class's name.
        is_partial: whether the harness makes the object, from sizes that only it knows.
    """

    group: str
    package: str
    suffix: str
    is_partial: bool = True


KINDS = {
    "attention": Kind("attention", "attention", "Attention"),
    "position": Kind("position", "positions", "Positions"),
}
__doc__ = (__doc__ or "").format(kinds=", ".join(KINDS))


def main(arguments: Sequence[str]) -> int:
    """Write the two files and say what comes next."""
    settings, words = split(arguments, ("folder",))
    if len(words) != 2:
        raise UserError(f"new needs a kind ({', '.join(KINDS)}) and a name: new attention cosine")
    kind_name, name = words
    if kind_name not in KINDS:
        raise UserError(
            f"unknown kind {kind_name!r}{nearest(kind_name, KINDS)} (there are: {', '.join(KINDS)})"
        )
    _check_name(name)
    kind = KINDS[kind_name]
    code, config, module = _places(kind, name, settings.get("folder"))
    for file in (code, config):
        if file.exists():
            raise UserError(f"{relative(file)} exists already: choose another name")
    class_name = "".join(word.capitalize() for word in name.split("_")) + kind.suffix
    template = resources.files("mha_lab.templates").joinpath(f"{kind_name}.py").read_text("utf-8")
    _write(code, template.replace(_PLACEHOLDER + kind.suffix, class_name))
    _write(config, _yaml(kind, template, f"{module}.{class_name}"))
    print("\n".join(_next_steps(kind_name, name, code, config, settings.get("folder"))))
    return 0


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UserError(
            f"{name!r} cannot be a name: it becomes a file and an option, so it takes small "
            "letters, digits and _, begins with a letter, and is no word of Python"
        )


def _places(kind: Kind, name: str, folder: str | None) -> tuple[Path, Path, str]:
    """Where the code and the config go, and the module's dotted name."""
    if folder is not None:
        root = Path(folder)
        return root / f"{name}.py", root / "configs" / kind.group / f"{name}.yaml", name
    from mha_lab.config import config_folder

    configs = config_folder()
    package = Path(__file__).parents[1]
    if configs == package / "configs":
        raise UserError(
            "mha_lab is installed, not checked out, so its folders are not yours to add to: "
            f"say where, new ... {name} folder=DIR"
        )
    dotted = f"mha_lab.{kind.package.replace('/', '.')}.{name}"
    return package / kind.package / f"{name}.py", configs / kind.group / f"{name}.yaml", dotted


def _yaml(kind: Kind, template: str, target: str) -> str:
    """The config: what ``list`` says of the option, and what makes it."""
    summary = template.removeprefix('"""').split(":", 1)[0].split("\n", 1)[0].rstrip('."')
    partial = "_partial_: true\n" if kind.is_partial else ""
    return f"# {summary}\n_target_: {target}\n{partial}"


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {relative(file)}: {error.strerror}") from error


def _next_steps(kind: str, name: str, code: Path, config: Path, folder: str | None) -> list[str]:
    outside = "" if folder is None else " --config-dir configs"
    choice = f"{kind}={name}"
    return [
        relative(code),
        relative(config),
        "",
        *([f"cd {folder}"] if folder not in (None, ".") else []),
        f"python -m mha_lab check {choice}{outside}",
        f"python -m mha_lab train {choice}{outside} "
        + ("" if kind == "task" else "+experiment=copy"),
    ]
