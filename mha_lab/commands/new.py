"""Start an option of your own: two files that work, pass their checks and are lint-clean.

Usage:
  python -m mha_lab new attention cosine              in the repository: beside the others
  python -m mha_lab new attention cosine folder=DIR   anywhere: DIR/cosine.py, DIR/configs/...

Kinds: {kinds}; the last three are parts of attention.
What to do next is printed.
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


@dataclass(frozen=True)
class Kind:
    """What can be started: where its files lie, and what its template calls itself.

    Attributes:
        group: the config group, and so the folder of ``configs/``.
        package: the folder of ``mha_lab/``.
        made_by: the class or function that the config names, in the template.
        becomes: what it is called then, of ``{name}`` and ``{camel}``.
        settings: further lines of the config.
        recipe: the words in front of its choice, with which it can be trained.
    """

    group: str
    package: str
    made_by: str
    becomes: str
    settings: str
    recipe: str = "+experiment=copy "


KINDS = {
    "attention": Kind(
        "attention",
        "attention",
        "TemplateAttention",
        "{camel}Attention",
        "_partial_: true\nscale: 10.0  # of the cosines, before the softmax\n",
    ),
    "position": Kind(
        "position",
        "positions",
        "TemplatePositions",
        "{camel}Positions",
        "_partial_: true\nfirst_rate: 0.1  # of each head, before training\n",
    ),
    "model": Kind(
        "model",
        "models",
        "TemplateModel",
        "{camel}Model",
        "_partial_: true\nembed_dim: 64\nnum_heads: 4\n"
        "num_layers: 4  # how often the block is gone through\ndropout: 0.0\n",
    ),
    "task": Kind(
        "task",
        "tasks",
        "template_task",
        "{name}_task",
        "min_length: 1\nmax_length: 10\nvocab_size: 10  # symbols, without the special tokens\n",
        recipe="",
    ),
    "weighting": Kind(
        "attention/weighting",
        "attention/weighting",
        "TemplateWeighting",
        "{camel}Weighting",
        "_partial_: true\npower: 2.0  # how fast weights fall below the best score\n",
    ),
    "pattern": Kind(
        "attention/pattern",
        "attention/patterns",
        "TemplatePattern",
        "{camel}Pattern",
        "_partial_: true\nnear: 2  # keys below this distance are seen too\n",
        recipe="+experiment=copy model=decoder ",  # positions of two sequences have no distance
    ),
    "mixing": Kind(
        "attention/mixing",
        "attention/mixing",
        "TemplateMixing",
        "{camel}Mixing",
        "_partial_: true\nshare: 0.1  # of the heads' mean, before training\n",
    ),
}
__doc__ = (__doc__ or "").format(kinds=", ".join(KINDS))


_VALUES = ("true", "false", "null", "inf", "nan")
"""Words that Hydra does not read as the name of an option."""


def main(arguments: Sequence[str]) -> int:
    """Write the two files and say what comes next."""
    settings, words = split(arguments, ("folder",))
    if len(words) != 2:
        raise UserError(f"new needs a kind ({', '.join(KINDS)}) and a name: new attention cosine")
    kind_name, name = words
    kind_name = kind_name.removeprefix("attention/")  # a part by the name of its group
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
    camel = "".join(word.capitalize() for word in name.split("_"))
    made_by = kind.becomes.format(name=name, camel=camel)
    template = resources.files("mha_lab.templates").joinpath(f"{kind_name}.py").read_text("utf-8")
    _write(code, template.replace(kind.made_by, made_by).replace('"template"', f'"{name}"'))
    _write(config, f"# {_summary(template)}\n_target_: {module}.{made_by}\n{kind.settings}")
    print("\n".join(_next_steps(kind, name, code, config, settings.get("folder"))))
    return 0


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name) or name in _VALUES:
        raise UserError(
            f"{name!r} cannot be a name: it becomes a file and an option, so it takes small "
            "letters, digits and _, begins with a letter, and is no word of Python or Hydra"
        )


def _places(kind: Kind, name: str, folder: str | None) -> tuple[Path, Path, str]:
    """Where the code and the config go, and the module's dotted name."""
    if folder is not None:
        root = Path(folder)
        return root / f"{name}.py", root / "configs" / kind.group / f"{name}.yaml", name
    from mha_lab.config import config_folder

    configs, package = config_folder(), Path(__file__).parents[1]
    if configs == package / "configs":
        raise UserError(
            "mha_lab is installed, not checked out, so its folders are not yours to add to: "
            f"say where, new {kind.group} {name} folder=DIR"
        )
    module = f"mha_lab.{kind.package.replace('/', '.')}.{name}"
    return package / kind.package / f"{name}.py", configs / kind.group / f"{name}.yaml", module


def _summary(template: str) -> str:
    """The template's first line up to its formula: what ``list`` says of the option."""
    return template.removeprefix('"""').split("\n", 1)[0].split(":", 1)[0].rstrip('."')


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {relative(file)}: {error.strerror}") from error


def _next_steps(kind: Kind, name: str, code: Path, config: Path, folder: str | None) -> list[str]:
    outside = "" if folder is None else "--config-dir configs "
    choice = f"{kind.group}={name}"
    return [
        relative(code),
        relative(config),
        "",
        *([f"cd {folder}"] if folder not in (None, ".") else []),
        f"python -m mha_lab check {outside}{choice}",
        f"python -m mha_lab train {outside}{kind.recipe}{choice}",
    ]
