"""Whether values fit a signature: its annotations are the one place that says what a key takes.

pydantic compares, strictly: a number is no text, a truth value no number, 2.0 no whole number, and
infinity and NaN are no numbers at all. The ranges of ``mha_lab.ranges`` are part of the types.
"""

import inspect
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Interval, Le, Lt, MinLen, Predicate
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from mha_lab.config.lightning_ranges import keys_of
from mha_lab.errors import UserError, nearest, shown

_STRICT = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text",
          type(None): "null"}  # fmt: skip
_SIGNS = {"ge": "of at least", "gt": "above", "le": "of at most", "lt": "below"}


def check_arguments(
    key: str,
    target: Callable[..., Any],
    node: Mapping[str, Any],
    *,
    elsewhere: Callable[[str], str] = lambda key: "",
) -> None:
    """Compare names and values with what a target takes, before it is called.

    Args:
        key: the node, dotted, for the sentence.
        target: a class or a function.
        node: the arguments of the config. Those that are nodes themselves (with a ``_target_``)
            are compared by their name alone.
        elsewhere: says which other option takes a key that this one does not; or nothing.

    Raises:
        UserError: an argument that the target does not take, or a value of another type or range.
    """
    parameters, known = inspect.signature(target).parameters, hints(target)
    said = keys_of(target)
    is_open = any(p.kind is p.VAR_KEYWORD for p in parameters.values()) and not said
    names = [
        name for name, p in parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    for name, value in node.items():
        if name not in names and name not in said and not is_open:
            other = elsewhere(f"{key}.{name}") or nearest(name, [*names, *said])
            raise UserError(f"unknown key '{key}.{name}'{other}")
        if not (isinstance(value, dict) and "_target_" in value):
            check_value(f"{key}.{name}", known.get(name, Any), value)


def check_value(key: str, hint: Any, value: Any) -> None:
    """Compare one value with a type.

    Raises:
        UserError: it is of another type, or out of its range.
    """
    adapter = _adapter(hint)
    if adapter is None:
        return
    try:
        adapter.validate_python(value)
    except (ValidationError, OverflowError) as error:
        near = nearest(value, _words(hint)) if isinstance(value, str) else ""
        raise UserError(f"{key} must be {describe(hint)}, got {shown(value)}{near}") from error


def hints(target: Callable[..., Any]) -> dict[str, Any]:
    """The types of a target's arguments, with their ranges."""
    init = target.__init__ if inspect.isclass(target) else target
    try:
        found = get_type_hints(init, include_extras=True)
    except (NameError, TypeError):  # annotations that only a type checker can read
        found = {}
    return {**found, **keys_of(target)}


def describe(hint: Any) -> str:
    """A type in words: ``a whole number of at least 1, or null``."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return " ".join([describe(arguments[0]), *filter(None, map(_range, arguments[1:]))])
    if origin is Literal:
        words = [_NAMES[type(None)] if a is None else str(a).lower() if isinstance(a, bool)
                 else str(a) for a in arguments]  # fmt: skip
        return words[0] if len(words) == 1 else f"one of {', '.join(words)}"
    if origin in (Union, types.UnionType):
        return ", or ".join(dict.fromkeys(map(describe, arguments)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "keys with their values, {KEY: VALUE, ...}"
    if origin is Callable:
        return "a node with a _target_, the class or function that makes it"
    if origin is not None and arguments and arguments[0] is not Any:
        return f"a list, each {describe(arguments[0])}"
    return _NAMES.get(hint) or str(getattr(hint, "__name__", hint))


def _words(hint: Any) -> list[str]:
    """The words that a type names."""
    if get_origin(hint) is Literal:
        return [word for word in get_args(hint) if isinstance(word, str)]
    return [word for one in get_args(hint) for word in _words(one)]


def _range(rule: Any) -> str:
    if isinstance(rule, MinLen):
        return "that is not empty"
    if isinstance(rule, Predicate):
        words = inspect.getdoc(rule.func) or ""
        return words.splitlines()[0].rstrip(".").lower()
    if not isinstance(rule, Interval | Ge | Gt | Le | Lt):
        return ""
    bounds = [
        (_SIGNS[sign], getattr(rule, sign))
        for sign in _SIGNS
        if getattr(rule, sign, None) is not None
    ]
    return " and ".join(f"{words} {bound}" for words, bound in bounds)


@cache
def _adapter(hint: Any) -> TypeAdapter[Any] | None:
    if hint is Any or hint is inspect.Parameter.empty:
        return None
    try:
        return TypeAdapter(hint, config=_STRICT)
    except PydanticUserError:
        return None  # a type that pydantic has no idea of says nothing of a config's values
