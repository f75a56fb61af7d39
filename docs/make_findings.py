"""Write docs/findings.md from the studies in experiments/ and their reports.

python docs/make_findings.py

Run it when a study was added, changed or run; a test compares.
"""

from pathlib import Path
from typing import Any

from mha_lab.reporting.document import Table
from mha_lab.reporting.markdown import escape, markdown_table
from mha_lab.studies.finding import claims_table, read_finding
from mha_lab.studies.places import FILE
from mha_lab.studies.reading import read
from mha_lab.studies.running import state
from mha_lab.studies.study import Study

HERE = Path(__file__).parent
STUDIES = HERE.parent / "experiments"
PAGE = "findings.md"
NOTE = (
    "<!-- written by docs/make_findings.py: run a study, or change its study.yaml, then run it -->"
)


def main() -> None:
    """Write the page."""
    (HERE / PAGE).write_text(page(), encoding="utf-8")


def page() -> str:
    """The text of the page: a table of all, then each with its claims and figure."""
    studies = [read(file.parent) for file in sorted(STUDIES.glob(f"*/{FILE}"))]
    parts = [
        "# Findings",
        NOTE,
        "What has been published of attention, asked again on this bench: each by one command, on "
        "one core, with the numbers side by side. [How a study is made](studies.md).",
        markdown_table(Table(["finding", "verdict", "minutes"], list(map(_row, studies)), "", 1)),
    ]
    for study in studies:
        parts += _section(study, read_finding(study))
    return "\n\n".join(parts) + "\n"


def _row(study: Study) -> list[str]:
    found = read_finding(study)
    title = f"[{study.spec.title}](#{_anchor(study.spec.title)})"
    return [title, _state(study), f"{found['minutes']:g}" if found else "–"]


def _section(study: Study, found: dict[str, Any]) -> list[str]:
    parts = [
        f"## {study.spec.title}",
        escape(study.spec.question),
        f"Source: {escape(study.spec.source)}",
        f"`python -m mha_lab study {study.name}` · "
        f"[setting, times, finding in words](../experiments/{study.name}/README.md)",
    ]
    if not found:
        return [*parts, f"State: {_state(study)}."]
    report = f"../experiments/{study.name}/report"
    caption = escape(study.figure.caption) if study.figure else ""
    figure = f"![{escape(study.spec.title)}]({report}/figure.png)"
    has_figure = (study.report / "figure.png").is_file()
    return [
        *parts,
        f"**{found['verdict']}** ({found['arms']} arms, {found['seeds']} seeds, "
        f"{found['minutes']:g} minutes); [all numbers]({report}/finding.md)",
        markdown_table(claims_table(found)),
        *([figure, caption] if has_figure else []),
    ]


def _state(study: Study) -> str:
    """As the repository tells it: runs that lie on this machine alone do not count."""
    return state(study) if read_finding(study) else "not run"


def _anchor(title: str) -> str:
    """The anchor that Markdown gives a heading."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


if __name__ == "__main__":
    main()
