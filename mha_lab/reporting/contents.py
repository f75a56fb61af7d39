"""What a report says of some runs, whole: title, findings, sections, colophon."""

import math
from collections.abc import Sequence

from mha_lab import __version__
from mha_lab.reporting import cautions, drawing, sections
from mha_lab.reporting.comparison import Comparison
from mha_lab.reporting.document import Block, Document, Text
from mha_lab.reporting.grouping import Group, natural_value
from mha_lab.reporting.measures import STEPS_TO_SOLVE, Measure, write_number, write_stat
from mha_lab.reporting.sentences import count, listed, named


def compose_document(comparison: Comparison, *, title: str, command: str) -> Document:
    """Write the whole report."""
    with drawing.style():
        whole = [
            sections.results(comparison),
            sections.lengths(comparison),
            sections.curves(comparison),
            sections.maps(comparison),
            cautions.configs(comparison),
            cautions.left_out(comparison),
            sections.all_runs(comparison),
        ]
    return Document(
        title=title or f"Comparison by {listed(comparison.by)}",
        subtitle=_subtitle(comparison),
        lead=_lead(comparison),
        sections=[section for section in whole if section.blocks],
        colophon=_colophon(comparison, command),
    )


def _subtitle(comparison: Comparison) -> str:
    seeds = sorted({run.seed for run in comparison.runs if run.values}, key=natural_value)
    return (
        f"{count(len(comparison.runs), 'run')} in {count(len(comparison.groups), 'group')}, "
        f"{count(len(seeds), 'seed')}"
    )


def _lead(comparison: Comparison) -> list[Block]:
    told = [comparison.measure, *comparison.beyond[:1], STEPS_TO_SOLVE]
    best = [_best_sentence(comparison.counted, one) for one in told]
    findings = [Text(sentence) for sentence in best if sentence]
    return [*findings, *(Text(sentence, "warning") for sentence in cautions.warnings(comparison))]


def _best_sentence(groups: Sequence[Group], measure: Measure) -> str:
    """Which group has the best mean, as it is written; ties are told as such."""
    described = [(group, measure.stat(group.complete)) for group in groups]
    stats = [(group, stat) for group, stat in described if stat and math.isfinite(stat.mean)]
    if len(stats) < 2:
        return ""
    best = (min if measure.is_better_low else max)(stat.mean for _, stat in stats)
    written = write_number(best, measure.style)
    first = [(g, s) for g, s in stats if write_number(s.mean, measure.style) == written]
    word = "Lowest" if measure.is_better_low else "Highest"
    word = "Fewest" if measure.style == "count" else word
    if len(first) > 1:
        labels = named([f"`{group.label}`" for group, _ in first])
        return f"{word} {measure.name}: {written}, shared by {labels}."
    group, stat = first[0]
    written = write_stat(stat, measure.style)
    return f"{word} {measure.name}: `{group.label}`, {written} ({count(stat.n, 'run')})."


def _of_lengths(comparison: Comparison) -> list[str]:
    if not comparison.beyond:
        return []
    return [
        "Accuracy up to 2× is the mean over the lengths beyond those of training, up to twice the "
        "longest; up to 3× that over the next ones, and so on. They are of the latest `evaluate` "
        "of each run, or of what `callbacks/length_generalization=on` logged last."
    ]


def _colophon(comparison: Comparison, command: str) -> list[str]:
    return [
        f"Made by `{command}` with mha_lab {__version__}.",
        "A run is complete when it was trained to its end (`solved` or `finished`) and tested; "
        "only complete runs are counted. Solved means that the validation accuracy reached the "
        "config's threshold, which is looked at only at validations. Seconds to solve are those "
        "of training alone.",
        *_of_lengths(comparison),
        f"Runs are named relative to `{comparison.common.name}`.",
    ]
