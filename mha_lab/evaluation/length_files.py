"""What an evaluation by lengths leaves in a folder: CSV files, a plot, maps."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mha_lab.evaluation.by_length import LengthEvaluation
from mha_lab.training.length_scores import MEASURES
from mha_lab.training.run_folder import write_rows, write_summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours that people who confuse red and green can tell apart (Okabe & Ito 2008).
_LINES = {
    "sequence_accuracy": ("#0072b2", "-"),
    "sequence_accuracy_length_given": ("#56b4e9", "--"),
    "token_accuracy_forced": ("#d55e00", "-"),
    "token_accuracy_free": ("#e69f00", "--"),
}


def write_evaluation(
    result: LengthEvaluation, folder: Path, *, overrides: Sequence[str] = ()
) -> None:
    """Write ``accuracy_by_range.csv``, ``accuracy_by_length.csv`` and ``.png``, and the maps.

    The maps of each range are written as a picture, and as a page to look around in.

    Args:
        result: the numbers and maps.
        folder: made where missing.
        overrides: kept in ``summary.json``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "accuracy_by_range.csv", result.ranges)
    write_rows(folder / "accuracy_by_length.csv", result.lengths)
    write_summary(folder, {"overrides": list(overrides), "ranges": result.ranges})
    plot_lengths(result.lengths, trained=result.trained, chance=result.chance).savefig(
        folder / "accuracy_by_length.png", dpi=150, bbox_inches="tight"
    )
    for name, example in result.examples.items():
        from mha_lab.maps.plot import plot_maps
        from mha_lab.view.gallery import Gallery

        title = f"lengths {name}: {example.title}"
        picture = plot_maps(example.drawn(), title=title)
        picture.savefig(folder / f"maps_{name}.png", dpi=150, bbox_inches="tight")
        Gallery(example.maps, title=title).save(folder / f"maps_{name}.html")


def plot_lengths(
    rows: Sequence[dict[str, Any]], *, trained: tuple[int, int] | None, chance: float
) -> "Figure":
    """Draw each measure by length, with bands of one standard error.

    Args:
        rows: one a length, with the measures and their errors.
        trained: the lengths that are shaded.
        chance: drawn as a dotted line.
    """
    import numpy as np
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7, 3.6))
    axes = figure.add_subplot()
    lengths = [row["length"] for row in rows]
    if trained is not None:
        axes.axvspan(
            trained[0] - 0.5, trained[1] + 0.5, color="#e3e6ea", label="lengths trained on"
        )
    axes.axhline(chance, color="#68717d", linewidth=1, linestyle=":", label="chance, a token")
    for name, (color, style) in _LINES.items():
        mean = np.array([row[name] for row in rows])
        error = np.nan_to_num([row[f"{name}_error"] for row in rows])
        axes.plot(
            lengths, mean, color=color, linestyle=style, marker=".", markersize=4,
            label=MEASURES[name],
        )  # fmt: skip
        axes.fill_between(
            lengths, np.clip(mean - error, 0, 1), np.clip(mean + error, 0, 1),
            color=color, alpha=0.2, linewidth=0,
        )  # fmt: skip
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("length of the source")
    axes.set_ylabel("accuracy")
    axes.set_ylim(-0.03, 1.03)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=9)
    return figure
