"""What a reader must know before trusting a mean: what differs, what is missing, what failed."""

from collections import Counter
from collections.abc import Sequence

from mha_lab.reporting.comparison import Comparison
from mha_lab.reporting.differences import differing_between, find_holes
from mha_lab.reporting.document import Block, Section, Table, Text
from mha_lab.reporting.sentences import count, listed

_MOST_COMBINATIONS, _MOST_KEYS = 12, 4  # that are named; others are counted


def warnings(comparison: Comparison) -> list[str]:
    """What a reader of the main table must know: runs not counted, means that may mislead."""
    sentences = []
    left_out = Counter(run.status for run in comparison.runs if not run.is_complete)
    left_out["missing"] = sum(len(seeds) for _, seeds in find_holes(comparison.groups).seeds)
    if left_out.total():
        words = listed(f"{n} {status}" for status, n in sorted(left_out.items()) if n)
        sentences.append(f"Not counted: {words} (the report says which, and why).")
    if comparison.mixes_models:
        sentences.append(
            "Not all attentions ran in the same model, so a difference may be the model's: see the "
            "column `model`, or choose one with `model=` for all."
        )
    keys = dict.fromkeys(key for group in comparison.counted for key in group.mixed)
    if keys:
        first = [f"`{key}`" for key in keys][:_MOST_KEYS]
        more = [count(len(keys) - _MOST_KEYS, "other key")] if len(keys) > _MOST_KEYS else []
        names = listed([*first, *more])
        sentences.append(
            f"Inside some groups more than the seed differs ({names}), so a mean over their runs "
            "may mislead: add what matters to `by=`."
        )
    return sentences


def configs(comparison: Comparison) -> Section:
    """What differs between and inside groups."""
    blocks: list[Block] = []
    if len(comparison.counted) > 1:
        between = differing_between(comparison.counted)
        if between:
            columns = list(zip(*between.values(), strict=True))
            rows = [
                [*group.shown, *values]
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
        [*group.shown, key, ", ".join(values)]
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
        rows.append(["–", *group.shown, numbers, "missing", "no run, but other groups have one"])
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
    named = ", ".join(
        "`" + " ".join(f"{k}={v}" for k, v in zip(comparison.by, one, strict=True)) + "`"
        for one in combinations[:_MOST_COMBINATIONS]
    )
    unnamed = len(combinations) - _MOST_COMBINATIONS
    more = f" and {unnamed} more" if unnamed > 0 else ""
    return (
        f"Of the {total} combinations of {listed(comparison.by)}, {len(combinations)} have no "
        f"run at all (not each of them need make sense): {named}{more}."
    )
