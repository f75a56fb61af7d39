"""The sections of a report, each made from the comparison alone."""

from collections.abc import Sequence

from mha_lab.reporting import figures
from mha_lab.reporting import maps as best
from mha_lab.reporting.comparison import Comparison
from mha_lab.reporting.differences import differing_between, find_holes
from mha_lab.reporting.document import Block, Figures, Picture, Section, Table, Text
from mha_lab.reporting.measures import (
    STEPS_TO_SOLVE,
    main_measures,
    of_summary,
    write_number,
    write_stat,
)
from mha_lab.reporting.sentences import listed, named
from mha_lab.reporting.statistics import by_length

_MOST_COMBINATIONS = 12
_MOST_OPEN = 16  # a longer table of what a figure shows too is folded


def main_table(comparison: Comparison) -> Table:
    """Mean ± standard deviation of each group."""
    measures = main_measures(comparison.metric)
    rows = []
    for group in comparison.groups:
        complete, n, total = group.complete, len(group.complete), len(group.runs)
        cells = [write_stat(one.stat(complete), one.style, of=n) for one in measures]
        rows.append([*group.key, str(n) if n == total else f"{n} of {total}", *cells])
    return Table(
        [*comparison.by, "n", *(measure.name for measure in measures)],
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
    if shown:
        blocks.append(Figures(shown))
    return Section("Results", blocks)


def lengths(comparison: Comparison) -> Section:
    """Accuracy by length, drawn and in numbers."""
    stats = {group.label: by_length(group.complete) for group in comparison.counted}
    lengths = sorted({length for one in stats.values() for length in one})
    picture = figures.accuracy_by_length(comparison.counted)
    if picture is None:
        return Section("Accuracy by length")
    rows = [
        [*group.key, *(write_stat(stats[group.label].get(n), "share") for n in lengths)]
        for group in comparison.counted
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
    found = best.best_maps(comparison.counted, comparison.measure)
    blocks: list[Block] = []
    if len(found) < len(comparison.counted):
        blocks.append(
            Text(f"Maps of the {len(found)} best of {len(comparison.counted)} groups are shown.")
        )
    pictures = best.draw(found)
    if pictures:
        blocks.append(Figures(pictures))
    without: dict[str, list[str]] = {}
    for one in found:
        if one.missing:
            without.setdefault(one.missing, []).append(f"`{one.group.label}`")
    blocks += [Text(f"No maps of {named(labels)}: {why}.") for why, labels in without.items()]
    return Section("Attention maps", blocks)


def configs(comparison: Comparison) -> Section:
    """What differs between and inside groups."""
    blocks: list[Block] = []
    if len(comparison.counted) > 1:
        between = differing_between(comparison.counted)
        if between:
            columns = list(zip(*between.values(), strict=True))
            rows = [
                [*group.key, *values]
                for group, values in zip(comparison.counted, columns, strict=True)
            ]
            blocks.append(
                Table([*comparison.by, *between], rows, "Config keys that differ between groups, "
                      "beyond the ones compared by. A dash: the config has no such key.")
            )  # fmt: skip
        else:
            blocks.append(
                Text(f"The configs of the groups differ in nothing but {listed(comparison.by)}.")
            )
    mixed = [
        [*group.key, key, ", ".join(values)]
        for group in comparison.counted
        for key, values in group.mixed.items()
    ]
    if mixed:
        blocks.append(
            Table([*comparison.by, "key", "values"], mixed, "Config keys other than the seed "
                  "that differ inside a group: a mean over these runs may mislead.")
        )  # fmt: skip
    return Section("What differs between the configs", blocks)


def left_out(comparison: Comparison) -> Section:
    """Every run that is not counted, and every hole in the grid, with its reason."""
    rows = []
    for run in comparison.runs:
        if not run.is_complete:
            key = [run.text(key) if key in run.values else "?" for key in comparison.by]
            rows.append([comparison.path(run), *key, run.text("seed"), run.status, run.reason])
    holes = find_holes(comparison.groups)
    for group, seeds in holes.seeds:
        numbers = listed(map(str, seeds))
        rows.append(["–", *group.key, numbers, "missing", "no run, but other groups have one"])
    blocks: list[Block] = []
    if rows:
        blocks.append(
            Table(["run", *comparison.by, "seed", "status", "reason"], rows,
                  "Runs that are not counted.")
        )  # fmt: skip
    else:
        blocks.append(Text("Every run is complete, and every group has a run of every seed."))
    if holes.combinations:
        blocks.append(Text(_without_runs(comparison, holes.combinations)))
    for group, seeds in holes.repeated:
        blocks.append(
            Text(f"`{group.label}` has more than one run of seed {listed(map(str, seeds))}; "
                 "each of them counts.")
        )  # fmt: skip
    return Section("Missing, unfinished and failed runs", blocks)


def _without_runs(comparison: Comparison, combinations: Sequence[tuple[str, ...]]) -> str:
    total = len(combinations) + len(comparison.groups)
    named = "; ".join(
        ", ".join(f"{key}={value}" for key, value in zip(comparison.by, one, strict=True))
        for one in combinations[:_MOST_COMBINATIONS]
    )
    unnamed = len(combinations) - _MOST_COMBINATIONS
    more = f"; and {unnamed} more" if unnamed > 0 else ""
    return (
        f"Of the {total} combinations of {listed(comparison.by)}, {len(combinations)} have no "
        f"run at all (not each of them need make sense): {named}{more}."
    )


def all_runs(comparison: Comparison) -> Section:
    """Each run with its numbers."""
    measures = [comparison.measure, of_summary("test/loss"), of_summary("steps"),
                of_summary("train_seconds")]  # fmt: skip
    rows = [
        [
            comparison.path(run),
            *group.key,
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
