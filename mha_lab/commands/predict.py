"""Print what a trained run makes of a sequence, and draw its attention.

Usage:
  python -m mha_lab predict run=FOLDER "3 1 2"                  prints the output
  python -m mha_lab predict run=FOLDER "3 1 2" figure=out.png   and draws its attention maps

Further settings: checkpoint=best|last; trust=MODULE, where a run's config names code that is not
this project's. figure= may end in .png, .svg, .pdf or .html: a page to look around in, which is
written beside a picture too.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mha_lab import trust
from mha_lab.arguments import no_more, split
from mha_lab.errors import MachineError, UserError

if TYPE_CHECKING:
    from mha_lab.evaluation import Prediction

_SETTINGS = ("run", "figure", "checkpoint", trust.SETTING)
_PICTURES = (".png", ".svg", ".pdf", ".html")


def main(arguments: Sequence[str]) -> int:
    """Predict, print, draw."""
    settings, rest = split(arguments, _SETTINGS)
    if "run" not in settings:
        raise UserError("predict needs run=FOLDER, the folder of a trained run")
    if not rest:
        raise UserError('predict needs a sequence, its tokens separated by spaces: "3 1 2"')
    # What looks like a setting is one that was mistyped; "3 + 2 =" is a sequence.
    no_more([word for word in rest if re.match(r"[a-z_]{2,}=", word)], _SETTINGS)
    figure = Path(settings["figure"]) if "figure" in settings else None
    if figure is not None:
        _check_figure(figure)

    from mha_lab.evaluation import predict

    prediction = predict(
        Path(settings["run"]),
        " ".join(rest),
        checkpoint=settings.get("checkpoint", "best"),
        trusted=trust.modules(settings.get(trust.SETTING)),
    )
    print(" ".join(prediction.output))
    if figure is not None:
        if not prediction.maps:
            raise UserError("figure=: this run's model has no attention to draw")
        try:
            files = _draw(prediction, figure)
        except OSError as error:
            raise MachineError(f"figure={figure} cannot be written: {error.strerror}") from error
        for file in files:
            print(file)
    return 0


def _draw(prediction: "Prediction", figure: Path) -> list[Path]:
    """Write the picture that was asked for, and beside it a page to look around in."""
    from mha_lab.view.gallery import Gallery

    page = Gallery(prediction.maps, title=" ".join(prediction.source)).save(
        figure.with_suffix(".html")
    )
    if figure.suffix == ".html":
        return [page]
    from mha_lab.maps.plot import plot_maps

    plot_maps(prediction.maps).savefig(figure, dpi=150, bbox_inches="tight")
    return [page, figure]


def _check_figure(figure: Path) -> None:
    if figure.suffix not in _PICTURES:
        raise UserError(
            f"figure={figure} must end in one of {', '.join(_PICTURES)}, got {figure.suffix!r}"
        )
    if not figure.parent.is_dir():
        raise UserError(f"figure={figure}: the folder {str(figure.parent)!r} does not exist")
