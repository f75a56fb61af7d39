"""The words of a command line in Hydra's syntax: each must be readable, and say its own thing."""

import shlex
from collections.abc import Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, QuotedString
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from mha_lab.errors import UserError, shown


def parse_words(words: Sequence[str]) -> list[Override]:
    """Read overrides, such as ``optimizer.lr=1e-3``.

    Args:
        words: what was typed, without options and their values.

    Raises:
        UserError: one cannot be read (the sentence shows quoting that works), or two set the same.
    """
    parsed: dict[str, Override] = {}
    for word in words:
        item = parse_word(word)
        key = f"{item.key_or_group}@{item.package}" if item.package else item.key_or_group
        if key in parsed:
            first = parsed[key].input_line
            raise UserError(f"{key} is given twice ({first} and {word}): only one can count")
        parsed[key] = item
    return list(parsed.values())


def parse_word(word: str) -> Override:
    """Read one override.

    Raises:
        UserError: it cannot be read.
    """
    if not word.isascii() and word.encode(errors="replace").decode() != word:
        raise UserError(f"{shown(word)} is not text: it holds bytes that are not UTF-8")
    parser = OverridesParser.create()
    try:
        item = parser.parse_override(word)
        if not item.key_or_group:
            raise ValueError("no key")
        item.value()
    except (HydraException, OmegaConfBaseException, ValueError, RecursionError) as error:
        raise UserError(f"cannot read {shown(word)}{_remedy(parser, word)}") from error
    return item


def check_choices(items: Sequence[Override], groups: Sequence[str]) -> None:
    """A group is given the name of an option, or a node of one's own: Hydra fails on the rest.

    Raises:
        UserError: it is given a number, a truth value or null.
    """
    for item in items:
        group, value = item.key_or_group, item.value()
        is_none = (value in (None, "") and not item.is_delete()) or isinstance(value, int | float)
        is_list = isinstance(value, list) and not all(isinstance(one, str) for one in value)
        if group in groups and (is_none or is_list):
            raise UserError(
                f"{group} must be chosen, {group}=OPTION (python -m mha_lab list {group} names "
                f"them), got {shown(value)}"
            )


def plain(value: Any) -> Any:
    """A parsed value without its quotes."""
    if isinstance(value, dict):
        return {plain(key): plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.text if isinstance(value, QuotedString) else value


def _remedy(parser: OverridesParser, word: str) -> str:
    """How to quote a word so that it is read, tried out before it is proposed."""
    key, is_pair, value = word.partition("=")
    if not is_pair:
        return ": write KEY=VALUE"
    double, single = value.replace('"', '\\"'), value.replace("'", "\\'")
    for quoted in (f'{key}="{value}"', f'{key}="{double}"', f"{key}='{single}'"):
        try:
            read = parser.parse_override(quoted).value()
        except Exception:  # whatever the parser makes of a word that is no override at all
            continue
        if str(read) == value and quoted.isprintable() and len(quoted) < 200:
            return (
                ": what is more than plain words and numbers needs quotes of its own; write "
                f"{shlex.quote(quoted)}"
            )
    return ": write KEY=VALUE, where KEY is a name like optimizer.lr"
