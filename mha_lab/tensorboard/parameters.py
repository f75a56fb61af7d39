"""Check the parameters of a request to the Attention tab; every one of them may be hostile."""

from __future__ import annotations

import re
from typing import NoReturn

from werkzeug.datastructures import MultiDict

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_SHOWN = 80


class BadRequestError(Exception):
    """A request that cannot be answered, with the HTTP status and a sentence that says why."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def not_found(message: str) -> NoReturn:
    """Refuse with 404: the request is sound, but there is no such thing."""
    raise BadRequestError(message, status=404)


def refuse(message: str) -> NoReturn:
    """Refuse with 400: there is something wrong with the request."""
    raise BadRequestError(message)


def texts(args: MultiDict[str, str], name: str) -> list[str]:
    """The values of a text parameter, each once.

    Raises:
        BadRequestError: There is none.
    """
    values = list(dict.fromkeys(args.getlist(name)))
    if not values:
        raise BadRequestError(f"Parameter {name!r} is missing; give it at least once.")
    return values


def text(args: MultiDict[str, str], name: str) -> str:
    """The one value of a text parameter.

    Raises:
        BadRequestError: It is missing or given more than once.
    """
    values = args.getlist(name)
    if len(values) != 1:
        count = "is missing" if not values else f"is given {len(values)} times"
        raise BadRequestError(f"Parameter {name!r} {count}; give it once.")
    return values[0]


def whole_number(args: MultiDict[str, str], name: str, *, low: int, high: int) -> int:
    """The one value of a whole-number parameter.

    Raises:
        BadRequestError: It is missing, given more than once, not a whole number, or outside of
            ``low`` to ``high``.
    """
    return _number(text(args, name), name, low, high)


def whole_numbers(
    args: MultiDict[str, str], name: str, *, low: int, high: int, most: int
) -> list[int]:
    """The values of a whole-number parameter, each once.

    Raises:
        BadRequestError: There is none, there are more than ``most``, or one is not a whole number
            of ``low`` to ``high``.
    """
    values = texts(args, name)
    if len(values) > most:
        raise BadRequestError(f"Parameter {name!r} is given {len(values)} times; {most} at most.")
    return list(dict.fromkeys(_number(value, name, low, high) for value in values))


def _number(value: str, name: str, low: int, high: int) -> int:
    if not _WHOLE_NUMBER.fullmatch(value):
        raise BadRequestError(f"Parameter {name!r} is {shown(value)}; it must be a whole number.")
    number = int(value)
    if not low <= number <= high:
        raise BadRequestError(f"Parameter {name!r} is {number}; it must be {low} to {high}.")
    return number


def shown(value: str) -> str:
    """A value as it may stand in a sentence: quoted, with odd characters escaped, and not long."""
    return ascii(value if len(value) <= _SHOWN else value[:_SHOWN] + "...")
