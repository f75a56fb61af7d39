"""Compare runs: mean ± standard deviation over seeds, curves, maps, what differs, what is missing.

Usage:
  python -m mha_lab report outputs/multirun/NAME                   compared by what differs
  python -m mha_lab report outputs/copy 'outputs/sort/*seed0*' by=attention,position
  python -m mha_lab report outputs table=markdown                  only the main table, to copy
  python -m mha_lab report latest                                  the newest run and its fellows

Paths are run folders, folders that hold runs anywhere below, or globs; `latest` is the folder of
the newest run below outputs/, such as its multirun. Settings:
  by=KEY[,KEY...]   what makes the groups: choices (attention, model, position, task, experiment)
                    or dotted config keys (optimizer.lr); by default what differs between the runs
  metric=NAME       the number of summary.json compared first (test/sequence_accuracy)
  out=FOLDER        where the report goes (`report` in the folder of the runs); a former report is
                    replaced, anything else never
  name=TITLE        the report's title
  table=markdown    print the main table alone as Markdown, and write nothing unless out= is given

Where runs were evaluated at longer lengths (`evaluate run=FOLDER lengths=...`, or trained with
callbacks/length_generalization=on), they are compared there too.

Writes index.html (one page that needs nothing else), report.md, figures (PNG), report.csv (a row a
group), runs.csv (a row a run) and accuracy_by_length.csv.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mha_lab.arguments import split
from mha_lab.commands.which_run import LATEST, newest_run
from mha_lab.errors import UserError, nearest
from mha_lab.terminal import relative, show_table, wrapped

if TYPE_CHECKING:
    from mha_lab.reporting.comparison import Comparison
    from mha_lab.reporting.document import Document, Table
    from mha_lab.reporting.finding import Found

_SETTINGS = ("by", "metric", "out", "name", "table")
_MOST_DAMAGED = 3  # that the terminal names; the report names all
DEFAULT_METRIC = "test/sequence_accuracy"


def main(arguments: Sequence[str]) -> int:
    """Read the runs, compare them, write and print the report."""
    from mha_lab.reporting.finding import find_runs
    from mha_lab.reporting.writing import check_out

    settings, paths = split(arguments, _SETTINGS)
    _check(settings, paths)
    paths = [_fellows() if word == LATEST and not Path(word).exists() else word for word in paths]
    found = find_runs(paths)
    wants_files = "table" not in settings or "out" in settings
    out = Path(settings["out"]) if "out" in settings else found.common / "report"
    if wants_files:
        check_out(out)
    comparison = _compare(found, settings)
    if "table" in settings:
        from mha_lab.reporting.markdown import markdown_table
        from mha_lab.reporting.sections import main_table

        print(markdown_table(main_table(comparison)))
    if wants_files:
        document = _write(comparison, settings, arguments, out)
        if "table" not in settings:
            _show(document, comparison, out)
    for line in _remarks(comparison, found):
        print(wrapped(line, sys.stderr), file=sys.stderr)
    return 0


def _check(settings: dict[str, str], paths: list[str]) -> None:
    for word in paths:
        key, is_pair, _ = word.partition("=")
        if word.startswith("-") or (is_pair and "/" not in key and not Path(word).exists()):
            raise UserError(
                f"unknown argument {word!r}{nearest(key, _SETTINGS)} (there are: "
                f"{', '.join(f'{name}=' for name in _SETTINGS)}, and paths of runs)"
            )
    if not paths:
        raise UserError("report needs the runs' folders: report outputs/... by=attention,position")
    if settings.get("table", "markdown") != "markdown":
        raise UserError(
            f"table={settings['table']} is not a form of table; there is table=markdown"
        )


def _fellows() -> str:
    """The folder that holds the newest run."""
    folder = relative(newest_run(LATEST, with_weights=False).parent)
    print(f"mha_lab: {LATEST} is {folder}", file=sys.stderr)
    return folder


def _compare(found: "Found", settings: dict[str, str]) -> "Comparison":
    from mha_lab.reporting.comparison import Comparison
    from mha_lab.reporting.grouping import check_by, default_by
    from mha_lab.reporting.measures import check_metric
    from mha_lab.reporting.reading import UNREADABLE, read_runs

    runs = read_runs(found.folders)
    if all(run.status == UNREADABLE for run in runs):
        many = f"none of the {len(runs)} runs can be read; the first, " if len(runs) > 1 else ""
        raise UserError(f"{many}{str(runs[0].folder)!r} cannot be read: {runs[0].reason}")
    by = tuple(key.strip() for key in settings["by"].split(",")) if "by" in settings else ()
    check_by(by, runs)
    metric = settings.get("metric", DEFAULT_METRIC)
    check_metric(metric, runs)
    return Comparison(runs, by or default_by(runs), metric, found.common)


def _write(
    comparison: "Comparison", settings: dict[str, str], arguments: Sequence[str], out: Path
) -> "Document":
    from mha_lab.reporting import tables
    from mha_lab.reporting.contents import compose_document
    from mha_lab.reporting.markdown import to_markdown
    from mha_lab.reporting.page import to_page
    from mha_lab.reporting.writing import to_csv, write_report

    command = f"python -m mha_lab report {shlex.join(arguments)}"
    document = compose_document(comparison, title=settings.get("name", ""), command=command)
    files = {
        "index.html": to_page(document).encode(),
        "report.md": to_markdown(document).encode(),
        "report.csv": to_csv(tables.group_rows(comparison)),
        "runs.csv": to_csv(tables.run_rows(comparison)),
        "accuracy_by_length.csv": to_csv(tables.length_rows(comparison)),
        **{f"{picture.name}.png": picture.png for picture in document.pictures()},
        **{page.name: page.html.encode() for page in document.attached()},
    }
    write_report(out, files, command)
    return document


def _show(document: "Document", comparison: "Comparison", out: Path) -> None:
    from mha_lab.reporting.sections import main_table

    table: Table = main_table(comparison)
    # What a narrow terminal leaves out first; the page has it.
    spare = ("parameters", "loss", "seconds to solve", "steps to solve")
    show_table(table.columns, table.rows, title=document.title, numeric=table.numeric, spare=spare)
    for name in ("index.html", "report.md", "report.csv", "runs.csv"):
        print(relative(out / name))


def _remarks(comparison: "Comparison", found: "Found") -> list[str]:
    """What a reader of the table alone must know."""
    from mha_lab.reporting.cautions import warnings
    from mha_lab.reporting.reading import UNREADABLE

    remarks = [_after_a_colon(text) for text in warnings(comparison)]
    damaged = [run for run in comparison.runs if run.status == UNREADABLE]
    remarks += [f"{relative(run.folder)}: {run.reason}" for run in damaged[:_MOST_DAMAGED]]
    if found.ignored:
        remarks.append(f"not a run, and none below: {', '.join(found.ignored)}")
    return [f"mha_lab: {remark}" for remark in remarks]


def _after_a_colon(sentence: str) -> str:
    """A sentence of the page, as the terminal says it."""
    return (sentence[0].lower() + sentence[1:]).rstrip(".").replace("`", "")
