"""Print what a trained run makes of sequences, and draw its attention.

Usage:
  python -m mha_lab predict run=FOLDER "3 1 2"                  prints the output
  python -m mha_lab predict run=FOLDER "3 1 2" "7 5"            of each sequence, a line each
  python -m mha_lab predict run=FOLDER "3 1 2" figure=out.png   and draws its attention maps
  python -m mha_lab predict run=FOLDER input=FILE output=FILE   many, from a file and into one
  python -m mha_lab predict run=latest "3 1 2"                  the newest run below outputs/

run= is a run's folder, or a folder of runs, of which the newest is taken. Files are text (a
sequence a line), JSON lines (the key "source") or CSV (the column source), by their ending: .txt,
.jsonl or .csv; what else stands in a row is kept, and the output stands beside it as "output".
Without output= the outputs are printed.

Further settings: checkpoint=best|last; trust=MODULE, where a run's config names code that is not
this project's. figure= may end in .png, .svg, .pdf or .html: a page to look around in, which is
written beside a picture too. Of several sequences the figures are numbered: out_1.png, ...
"""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mha_lab.arguments import no_more, split
from mha_lab.commands.which_run import which_run
from mha_lab.config import trust
from mha_lab.errors import MachineError, UserError
from mha_lab.terminal import tell

if TYPE_CHECKING:
    from mha_lab.evaluation.prediction import Prediction
    from mha_lab.evaluation.predictor import Predictor
    from mha_lab.tasks.sequence_file import Row

_SETTINGS = ("run", "input", "output", "figure", "checkpoint", trust.SETTING)
_PICTURES = (".png", ".svg", ".pdf", ".html")


def main(arguments: Sequence[str]) -> int:
    """Predict; print or write; draw."""
    settings, words = split(arguments, _SETTINGS)
    if "run" not in settings:
        raise UserError("predict needs run=FOLDER, the folder of a trained run")
    # What looks like a setting is one that was mistyped; "3 + 2 =" is a sequence.
    no_more([word for word in words if re.match(r"[a-z_]{2,}=", word)], _SETTINGS)
    _check_words(words, settings)
    figure = Path(settings["figure"]) if "figure" in settings else None
    if figure is not None:
        _check_figure(figure)
    output = Path(settings["output"]) if "output" in settings else None
    rows = _rows(words, settings.get("input"), output)

    from mha_lab.evaluation.by_length import why_beyond
    from mha_lab.evaluation.predictor import Predictor

    folder = which_run("run", settings["run"])
    trusted = trust.modules(settings.get(trust.SETTING))
    checkpoint = settings.get("checkpoint", "best")
    predictor = Predictor.load(folder, checkpoint=checkpoint, trusted=trusted)
    tokens = [_read(predictor, row) for row in rows]
    if figure is not None and not predictor.module.model.uses_attention:
        raise UserError("figure=: this run's model has no attention to draw")
    answers = predictor.outputs(tokens, [row.place for row in rows])
    reason = why_beyond(folder, max(map(len, tokens)), trusted)
    if reason is not None:
        tell(reason)
    _hand_over(rows, answers, output)
    for number, one in enumerate(tokens, start=1):
        if figure is None:
            break
        several = f"{figure.stem}_{number}{figure.suffix}" if len(tokens) > 1 else figure.name
        _write_figure(predictor.predict(one), figure.with_name(several))
    return 0


def _check_words(words: Sequence[str], settings: dict[str, str]) -> None:
    if not words and "input" not in settings:
        raise UserError(
            'predict needs a sequence, its tokens separated by spaces: "3 1 2"; or input=FILE'
        )
    for setting, what in (("words", "sequences"), ("figure", "figure=")):
        if "input" in settings and (words if setting == "words" else setting in settings):
            raise UserError(f"{what} and input= do not go together: give one of them")
    if len(words) > 1 and all(len(word.split()) == 1 for word in words):
        whole = " ".join(words)
        tell(
            f"these are {len(words)} sequences; a single one is written in quotes, as in "
            f'"{whole if len(whole) < 40 else "3 1 2"}"'
        )


def _rows(words: Sequence[str], file: str | None, output: Path | None) -> list["Row"]:
    """The sequences that were typed, or those of a file."""
    from mha_lab.tasks.errors import DataFileError
    from mha_lab.tasks.sequence_file import Row, check_suffix, read_rows

    try:
        if output is not None:
            check_suffix(output)
        rows = [Row("", word) for word in words] if file is None else read_rows(Path(file))
    except DataFileError as error:
        raise UserError(str(error)) from error
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        reason = "is a folder" if output.is_dir() else f"has no folder {str(output.parent)!r}"
        raise UserError(f"output={output} {reason}: name a file in a folder that exists")
    if output is not None and file is not None and output.resolve() == Path(file).resolve():
        raise UserError(f"output={output} is the input, which would be lost: name another file")
    return rows


def _read(predictor: "Predictor", row: "Row") -> list[str]:
    try:
        return predictor.read(row.source)
    except UserError as error:
        raise UserError(f"{row.place}: {error}" if row.place else str(error)) from error


def _hand_over(rows: list["Row"], answers: list[list[str]], output: Path | None) -> None:
    """Print the outputs, or write them: a file is whole, or not there."""
    from mha_lab.tasks.sequence_file import written
    from mha_lab.training.run_folder import write_atomically

    if output is None:
        print(written(rows, answers, ".txt"), end="")
        return
    try:
        write_atomically(output, written(rows, answers, output.suffix.lower()))
    except OSError as error:
        raise MachineError(f"output={output} cannot be written: {error.strerror}") from error
    print(f"{len(rows)} {'sequence' if len(rows) == 1 else 'sequences'} answered\n{output}")


def _write_figure(prediction: "Prediction", figure: Path) -> None:
    try:
        files = _draw(prediction, figure)
    except OSError as error:
        raise MachineError(f"figure={figure} cannot be written: {error.strerror}") from error
    for file in files:
        print(file)


def _draw(prediction: "Prediction", figure: Path) -> list[Path]:
    """Write the picture that was asked for, and beside it a page to look around in.

    Both, or neither: they are made in memory, and a file that could not be written is removed.
    """
    from mha_lab.view.gallery import Gallery

    title = prediction.title
    made = {figure.with_suffix(".html"): Gallery(prediction.maps, title=title).show().html.encode()}
    if figure.suffix != ".html":
        from mha_lab.maps.plot import plot_maps

        picture = io.BytesIO()
        kind = figure.suffix.removeprefix(".")
        plot_maps(prediction.drawn(), title=title).savefig(
            picture, format=kind, dpi=150, bbox_inches="tight"
        )
        made[figure] = picture.getvalue()
    from mha_lab.training.run_folder import replacing

    with replacing(*made) as halves:
        for half, content in zip(halves, made.values(), strict=True):
            half.write_bytes(content)
    return list(made)


def _check_figure(figure: Path) -> None:
    if figure.suffix not in _PICTURES:
        raise UserError(
            f"figure={figure} must end in one of {', '.join(_PICTURES)}, got {figure.suffix!r}"
        )
    if not figure.parent.is_dir():
        raise UserError(f"figure={figure}: the folder {str(figure.parent)!r} does not exist")
