"""Where an error left somebody's own code, for a sentence in place of a traceback."""

import traceback
from collections.abc import Sequence
from pathlib import Path

_PACKAGE = Path(__file__).parent


def place_of(error: BaseException, without: Sequence[Path] = ()) -> str:
    """The last line that an error went through outside of this package, or else inside.

    Args:
        error: was raised.
        without: files and folders that are not meant.

    Returns:
        ``in mine.py, line 7: return scores / 0``, or nothing where all of it is in libraries.
    """
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in Path(frame.filename).parts
        and Path(frame.filename).is_file()
        and not any(Path(frame.filename).is_relative_to(place) for place in without)
    ]
    own = [frame for frame in frames if not Path(frame.filename).is_relative_to(_PACKAGE)]
    if not frames:
        return ""
    last = (own or frames)[-1]
    return f"in {Path(last.filename).name}, line {last.lineno}: {last.line}"
