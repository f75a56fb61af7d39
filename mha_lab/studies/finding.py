"""The finding: claims beside numbers, as JSON for programs and Markdown for people."""

import json
from collections.abc import Sequence
from typing import Any

from mha_lab import __version__
from mha_lab.reporting.document import Table
from mha_lab.reporting.markdown import escape, markdown_table
from mha_lab.reporting.writing import to_csv, write_report
from mha_lab.studies.claims import Judged, judge, verdict
from mha_lab.studies.figures import attached, picture
from mha_lab.studies.measuring import Row
from mha_lab.studies.study import Study
from mha_lab.studies.tables import mean_rows, table

FINDING = "finding.json"
_HOLDS = {True: "yes", False: "no", None: "not measured"}
_MOST_BYTES = 2**20


def find(study: Study, rows: Sequence[Row], *, seconds: float) -> dict[str, Any]:
    """What a study found.

    Args:
        study: in the form that was run.
        rows: everything that was measured.
        seconds: that all runs took of the processor together.
    """
    judged = [judge(claim, rows) for claim in study.claims]
    return {
        "study": study.name,
        "form": study.form,
        "title": study.spec.title,
        "question": " ".join(study.spec.question.split()),
        "source": " ".join(study.spec.source.split()),
        "verdict": verdict(judged),
        "claims": [_claim(one) for one in judged],
        "arms": len(study.arms),
        "seeds": study.seeds,
        "minutes": round(seconds / 60, 1),
        "command": command(study),
        "key": study.key,
        "version": __version__,
    }


def command(study: Study) -> str:
    """What makes the finding again."""
    form = " --quick" if study.form.startswith("quick") else ""
    return f"python -m mha_lab study {study.name}{form}"


def write(study: Study, rows: Sequence[Row], found: dict[str, Any]) -> None:
    """Write the report's folder; a former report is replaced.

    Raises:
        UserError: something else lies there.
    """
    image = picture(study, rows)
    shown = table(study, rows)
    files = {
        FINDING: (json.dumps(found, indent=2, ensure_ascii=False) + "\n").encode(),
        "finding.md": to_markdown(found, shown, with_figure=image is not None).encode(),
        "table.md": (markdown_table(shown) + "\n").encode(),
        "table.csv": to_csv(mean_rows(study, rows)),
        "runs.csv": to_csv(rows),
    }
    if image is not None:
        files["figure.png"] = image
    files |= attached(study, rows)
    if sum(map(len, files.values())) > _MOST_BYTES:  # of the runs, means are what a reader needs
        del files["runs.csv"]
    write_report(study.report, files, found["command"])


def to_markdown(found: dict[str, Any], shown: Table, *, with_figure: bool) -> str:
    """The finding as a page."""
    parts = [
        f"# {escape(found['title'])}: {found['verdict']}",
        f"{escape(found['question'])} ({escape(found['source'])})",
        markdown_table(claims_table(found)),
        *(["![the numbers measured](figure.png)"] if with_figure else []),
        escape(shown.caption),
        markdown_table(shown),
        f"`{found['command']}`: {found['arms']} arms, {found['seeds']} seeds, "
        f"{found['minutes']} minutes of the processor for training and measuring."
        + ("" if found["form"] == "full" else f" The {found['form']} form: no test is made."),
    ]
    return "\n\n".join(parts) + "\n"


def claims_table(found: dict[str, Any]) -> Table:
    """Theirs and ours, side by side."""
    rows = [[c["says"], c["theirs"] or "–", c["ours"], _HOLDS[c["holds"]]] for c in found["claims"]]
    return Table(["claim", "theirs", "ours", "holds"], rows, "")


def _claim(one: Judged) -> dict[str, Any]:
    texts = {"says": one.claim.says, "theirs": one.claim.theirs, "ours": one.ours}
    return {k: " ".join(v.split()) for k, v in texts.items()} | {"holds": one.holds, "p": one.p}


def read_finding(study: Study) -> dict[str, Any]:
    """The finding in a study's report; empty where there is none."""
    try:
        content = json.loads((study.report / FINDING).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
