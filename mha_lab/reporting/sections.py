"""The sections of a report that show results, each made from the comparison alone."""

from mha_lab.reporting import figures, length_figures
from mha_lab.reporting.best_maps import best_maps
from mha_lab.reporting.comparison import Comparison
from mha_lab.reporting.document import Block, Figures, Picture, Section, Table, Text
from mha_lab.reporting.map_figures import draw_maps
from mha_lab.reporting.map_page import all_maps
from mha_lab.reporting.measures import (
    STEPS_TO_SOLVE,
    main_measures,
    of_summary,
    write_number,
    write_stat,
)
from mha_lab.reporting.sentences import named
from mha_lab.reporting.statistics import by_length

_MOST_LENGTHS = 16  # more are in accuracy_by_length.csv alone
_MOST_OPEN = 16  # a longer table of what a figure shows too is folded


def main_table(comparison: Comparison) -> Table:
    """Mean ± standard deviation of each group."""
    measures = main_measures(comparison.metric, comparison.beyond)
    rows = []
    for group in comparison.groups:
        complete, n, total = group.complete, len(group.complete), len(group.runs)
        cells = [write_stat(one.stat(complete), one.style, of=n) for one in measures]
        ran_in = [", ".join(group.models)] if comparison.mixes_models else []
        rows.append([*group.shown, *ran_in, str(n) if n == total else f"{n} of {total}", *cells])
    ran_in = ["model"] if comparison.mixes_models else []
    return Table(
        [*comparison.by, *ran_in, "n", *(measure.name for measure in measures)],
        rows,
        "Mean ± sample standard deviation over the n complete runs of each group. Steps and "
        "seconds to solve are those of the solved runs; where not all were solved, their number "
        "follows.",
        numeric=1 + len(measures),
    )


def results(comparison: Comparison) -> Section:
    """The main table, and every run as a dot."""
    blocks: list[Block] = [main_table(comparison)]
    shown: list[Picture] = []
    for measure, name in ((comparison.measure, "results"), (STEPS_TO_SOLVE, "steps_to_solve")):
        if any(measure.stat(group.complete) for group in comparison.counted):
            shown.append(figures.every_run(comparison.counted, measure, name))
    accuracies = [of_summary("test/sequence_accuracy"), *comparison.beyond]
    tasks = length_figures.tasks_and_variants(comparison.counted, accuracies)
    shown += [] if tasks is None else [tasks]
    if shown:
        blocks.append(Figures(shown))
    return Section("Results", blocks)


def lengths(comparison: Comparison) -> Section:
    """Accuracy by length, drawn and in numbers."""
    picture = length_figures.accuracy_by_length(comparison.counted)
    if picture is None:
        return Section("Accuracy by length")
    stats = [by_length(group.complete) for group in comparison.counted]
    lengths = sorted({length for one in stats for length in one})
    if len(lengths) > _MOST_LENGTHS:
        return Section("Accuracy by length", [Figures([picture])])
    rows = [
        [*group.shown, *(write_stat(one.get(length), "share") for length in lengths)]
        for group, one in zip(comparison.counted, stats, strict=True)
    ]
    table = Table(
        [*comparison.by, *map(str, lengths)],
        rows,
        "Sequence accuracy on test sequences of each length, mean ± sample standard deviation.",
        numeric=len(lengths),
        stacked=True,
        folded=len(rows) > _MOST_OPEN,
    )
    return Section("Accuracy by length", [Figures([picture]), table])


def curves(comparison: Comparison) -> Section:
    """Learning curves of the metric, the accuracy and the loss."""
    own = "val/" + comparison.metric.removeprefix("test/")
    logged = {key for group in comparison.counted for run in group.complete for key in run.curves}
    keys = [k for k in dict.fromkeys([own, "val/sequence_accuracy", "val/loss"]) if k in logged]
    drawn = [
        figures.learning_curves(comparison.counted, key, "curve_" + key.removeprefix("val/"))
        for key in keys
    ]
    shown = [one for one in drawn if one is not None]
    return Section("Learning curves", [Figures(shown)] if shown else [])


def maps(comparison: Comparison) -> Section:
    """The maps of each group's best run."""
    found = best_maps(comparison.counted, comparison.measure)
    blocks: list[Block] = []
    if len(found) < len(comparison.counted):
        blocks.append(
            Text(f"Maps of the {len(found)} best of {len(comparison.counted)} groups are shown.")
        )
    pictures = draw_maps(found)
    if pictures:
        blocks += [Figures(pictures), all_maps(found)]
    without: dict[str, list[str]] = {}
    for one in found:
        if one.missing:
            without.setdefault(one.missing, []).append(f"`{one.group.label}`")
    blocks += [Text(f"No maps of {named(labels)}: {why}.") for why, labels in without.items()]
    return Section("Attention maps", blocks)


def all_runs(comparison: Comparison) -> Section:
    """Each run with its numbers."""
    measures = [comparison.measure, of_summary("test/loss"), of_summary("steps"),
                of_summary("train_seconds")]  # fmt: skip
    rows = [
        [
            comparison.path(run),
            *group.shown,
            run.text("seed"),
            run.status,
            *(write_number(measure.of(run), measure.style) for measure in measures),
        ]
        for group in comparison.groups
        for run in group.runs
    ]
    columns = ["run", *comparison.by, "seed", "status", *(m.name for m in measures)]
    table = Table(columns, rows, f"All {len(rows)} runs whose config is known.", 4, folded=True)
    return Section("All runs", [table])
