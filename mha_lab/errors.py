"""The two errors that are told in a sentence: the user can mend this; the machine cannot do it."""

import difflib
import unicodedata
from collections.abc import Iterable

from mha_lab.other_names import OTHER_NAMES


class UserError(Exception):
    """A mistake in what was asked for; its text is one sentence that says how to mend it.

    The command line prints the text without a traceback and exits with code 2.
    """


class MachineError(Exception):
    """What the machine cannot do: its disk is full or read-only, its memory is used up.

    The command line prints the text without a traceback and exits with code 1.
    """


def as_machine_error(error: BaseException) -> MachineError | None:
    """Say in a sentence what the machine could not do; None for an error of another kind."""
    if isinstance(error, MachineError):
        return error
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.errno is not None:
        where = f" ({error.filename!r})" if error.filename is not None else ""
        return MachineError(f"{error.strerror}{where}")
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return MachineError(f"out of memory: {text or 'nothing is left'}")
    if "allocate memory" in text:  # a RuntimeError of torch
        return MachineError(f"out of memory: {text[text.index('allocate memory') :]}")
    return None


def nearest(word: str, known: Iterable[str]) -> str:
    """Say which known word was probably meant.

    Args:
        word: what was typed.
        known: every word that would have been right.

    Returns:
        ``"; did you mean 'custom'?"``, or an empty string where nothing is near.
    """
    others = [other for other in known if other != word]
    meant = OTHER_NAMES.get(word.rpartition(".")[2].lower(), "")
    # A key is known by its whole name, or by its last word where its node is clear.
    same = [o for o in others if o == meant] or [o for o in others if meant.endswith(f".{o}")]
    same_end = same or sorted((o for o in others if o.rpartition(".")[2] == word), key=len)
    cutoff = 0.6 if len(word) < 6 else 0.5  # short words have half of their letters by chance
    close = same_end or difflib.get_close_matches(word, others, n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""


def shown(value: object, width: int = 100) -> str:
    """A value for a sentence: in one line, short, and what looks alike or cannot be seen spelled.

    Example:
        ``shown("\u0430b")`` is ``'аb' (with CYRILLIC SMALL LETTER A)``.
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits; endless nesting
        text = f"a value of type {type(value).__name__}"
    text = text.encode(errors="backslashreplace").decode()
    text = text if len(text) <= width else f"{text[:width]}..."
    return text + spelled(text)


def spelled(text: str, most: int = 3) -> str:
    """The names of a text's characters that are not ASCII, which may look like others; or nothing.

    Letters with a mark are one character or two, as they were typed: the names tell.
    """
    strange = list(dict.fromkeys(character for character in text if not character.isascii()))
    if not strange:
        return ""
    names = [unicodedata.name(one, f"U+{ord(one):04X}") for one in strange[:most]]
    more = ", ..." if len(strange) > most else ""
    return f" (with {', '.join(names)}{more})"
