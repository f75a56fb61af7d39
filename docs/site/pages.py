"""Which files of the repository are pages of the site, and what each page says.

A page stands where its file stands: ``docs/tasks.md`` is at ``docs/tasks/``. What has no Markdown
of its own gets it here: a notebook, a folder of the package (its reference), any other file.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[2]
PACKAGE = "mha_lab"
REFERENCE = ("attention", "positions", "tasks", "models", "maps", "recording", "view", "callbacks",
             "tensorboard", "training", "sweeping", "reporting", "studies", "testing")  # fmt: skip
SHOWN_AS_THEY_ARE = (".png", ".svg", ".jpg", ".gif", ".html", ".css", ".csv", ".json", ".pdf")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".sh": "bash", ".toml": "toml"}
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)")


def site() -> dict[str, str | Path]:
    """Every page and file by its place in the site: a text, or the file that holds it.

    It holds the pages that the menu may name, and all that they link to.
    """
    found: dict[str, str | Path] = dict(_reference())
    waiting = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    for pattern in (
        "docs/*.md",
        "docs/notebooks/*.ipynb",
        "docs/site/*.css",
        "experiments/*/README.md",
    ):
        waiting += sorted(ROOT.glob(pattern))
    while waiting:
        path = waiting.pop()
        place = place_of(path)
        if place in found:
            continue
        found[place] = path if path.suffix in (".md", *SHOWN_AS_THEY_ARE) else _text(path)
        if path.suffix == ".ipynb":
            found[path.relative_to(ROOT).as_posix()] = path
        if path.suffix == ".md":
            waiting += linked(path)
    return found


def place_of(path: Path) -> str:
    """Where a file or folder of the repository is in the site: its page, or the file itself."""
    here = PurePosixPath(path.relative_to(ROOT).as_posix())
    if here.parts[:1] == (PACKAGE,) and path.suffix in ("", ".py"):
        return str((here if path.is_dir() else here.parent) / "index.md")
    if path.is_dir():
        return str(here / ("README.md" if (path / "README.md").exists() else "index.md"))
    if path.suffix in (".md", *SHOWN_AS_THEY_ARE):
        return str(here)
    return str(here.with_suffix(".md") if path.suffix == ".ipynb" else f"{here}.md")


def linked(path: Path) -> Iterator[Path]:
    """The files and folders of the repository that a Markdown file links to."""
    for number, part in enumerate(CODE.split(path.read_text(encoding="utf-8"))):
        for target in LINK.findall(part) if number % 2 == 0 else ():
            there = (path.parent / target).resolve()
            if there.exists() and there.is_relative_to(ROOT):
                yield there / "README.md" if (there / "README.md").exists() else there


def _text(path: Path) -> str:
    """The page of a notebook, a folder or a file of code."""
    name = path.relative_to(ROOT).as_posix()
    if path.suffix == ".ipynb":
        cells, _ = MarkdownExporter().from_filename(str(path))
        return f"{cells}\n\n---\n\n[This notebook, to run it]({path.name}) with `jupyter lab`.\n"
    if path.is_dir():
        names = [
            f"- [{one.name}]({one.name})" if one.suffix in (".md", ".ipynb") else f"- `{one.name}`"
            for one in sorted(path.iterdir())
            if one.name[0] not in "._"
        ]
        return "\n".join([f"# {name}", "", *names, ""])
    fence = LANGUAGES.get(path.suffix, "text")
    return f"# {name}\n\n````{fence}\n{path.read_text(encoding='utf-8')}\n````\n"


def _reference() -> Iterator[tuple[str, str]]:
    """A page for each folder of the package, one section a file."""
    names = ast.literal_eval(re.search(r"_HOMES = ({.*?})", _source("__init__"), re.DOTALL)[1])
    public = [f"- [`{PACKAGE}.{name}`][{home}.{name}]" for name, home in names.items()]
    rooms = [f"- [{PACKAGE}.{room}]({room}/index.md): {_sentence(room)}" for room in rooms_of()]
    top = [
        "# Reference",
        "",
        "What `mha_lab` offers by name:",
        "",
        *public,
        "",
        "Its rooms:",
        "",
        *rooms,
    ]
    yield f"{PACKAGE}/index.md", "\n".join([*top, ""])
    for room in rooms_of():
        files = sorted((ROOT / PACKAGE / room).glob("*.py"), key=lambda file: file.name)
        modules = [file for file in files if file.name != "__init__.py"]
        dotted = f"{PACKAGE}.{room.replace('/', '.')}"
        sections = [f"::: {dotted}.{file.stem}\n" for file in modules]
        yield (
            f"{PACKAGE}/{room}/index.md",
            "\n".join([f"# {dotted}", "", _sentence(room), "", *sections]),
        )


def rooms_of() -> list[str]:
    """The folders of the package that the reference holds, as they stand below it."""
    folders = [
        one.parent for room in REFERENCE for one in (ROOT / PACKAGE / room).rglob("__init__.py")
    ]
    return sorted(folder.relative_to(ROOT / PACKAGE).as_posix() for folder in folders)


def _sentence(room: str) -> str:
    return (ast.get_docstring(ast.parse(_source(f"{room}/__init__"))) or "").split("\n\n")[0]


def _source(module: str) -> str:
    return (ROOT / PACKAGE / f"{module}.py").read_text(encoding="utf-8")
