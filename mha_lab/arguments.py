"""The words after a command: ``key=value`` settings of the command itself, and the rest."""

from collections.abc import Sequence

from mha_lab.errors import UserError, nearest


def split(arguments: Sequence[str], settings: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Separate a command's own ``key=value`` settings from its other words.

    Args:
        arguments: the words after the command.
        settings: the names of the command's own settings.

    Returns:
        The settings given, and every other word in order.

    Raises:
        UserError: a setting is given twice or is empty.
    """
    found: dict[str, str] = {}
    rest = []
    for word in arguments:
        key, is_pair, value = word.partition("=")
        if not is_pair or key not in settings:
            rest.append(word)
        elif key in found:
            raise UserError(f"{key}= is given twice")
        elif not value:
            raise UserError(f"{key}= is empty: give it a value")
        else:
            found[key] = value
    return found, rest


def no_more(rest: Sequence[str], settings: Sequence[str]) -> None:
    """Refuse words that mean nothing to a command.

    Raises:
        UserError: names the first one, and the nearest setting.
    """
    for word in rest:
        key = word.partition("=")[0]
        known = ", ".join(f"{name}=" for name in settings)
        raise UserError(f"unknown argument {word!r}{nearest(key, settings)} (there are: {known})")


def whole_number(name: str, text: str, *, low: int, high: int) -> int:
    """Read a whole number in a range.

    Raises:
        UserError: not a whole number, or out of range.
    """
    try:
        number = int(text)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise UserError(f"{name} must be a whole number from {low} to {high}, got {text!r}")
    return number
