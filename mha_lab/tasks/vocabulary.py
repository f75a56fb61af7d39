"""Which token has which id: five special tokens first, then the symbols of a task."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar


class Vocabulary:
    """A fixed list of tokens and their ids.

    The special tokens are ``<pad>``, ``<bos>``, ``<eos>``, ``<sep>`` and ``<unk>``, with ids 0 to
    4; the symbols follow from 5 on. The ids of the special tokens are class constants:
    ``Vocabulary.PAD`` and so on.

    Args:
        symbols: the tokens of a task, each once.

    Raises:
        TypeError: symbols is one string, or holds something that is not text.
        ValueError: there is no symbol, or one is empty, given twice, or a special token.
    """

    PAD: ClassVar[int] = 0
    BOS: ClassVar[int] = 1
    EOS: ClassVar[int] = 2
    SEP: ClassVar[int] = 3
    UNK: ClassVar[int] = 4
    SPECIAL: ClassVar[tuple[str, ...]] = ("<pad>", "<bos>", "<eos>", "<sep>", "<unk>")

    def __init__(self, symbols: Sequence[str]) -> None:
        _check_symbols(symbols)
        self.symbols: tuple[str, ...] = tuple(symbols)
        self.tokens: tuple[str, ...] = (*self.SPECIAL, *self.symbols)
        self._ids = {token: id_ for id_, token in enumerate(self.tokens)}
        self._all_are_characters = all(len(symbol) == 1 for symbol in self.symbols)

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.symbols == other.symbols

    def __hash__(self) -> int:
        return hash(self.symbols)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.symbols[:5])) + (", ..." if len(self.symbols) > 5 else "")
        return f"Vocabulary([{shown}])  # {len(self)} tokens, {len(self.SPECIAL)} of them special"

    @classmethod
    def output_start(cls, tokens: Sequence[str]) -> int | None:
        """The place from which on the output is written token by token; None if there is none."""
        begins = cls.SPECIAL[cls.BOS], cls.SPECIAL[cls.SEP]
        return next((i for i, token in enumerate(tokens) if token in begins), None)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """The ids of tokens; a token that is not in the vocabulary becomes ``UNK``."""
        return [self._ids.get(token, self.UNK) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The tokens of ids, special tokens and padding too.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        tokens = []
        for id_ in ids:
            if not 0 <= id_ < len(self):
                raise ValueError(f"ids must lie between 0 and {len(self) - 1}, got {id_}")
            tokens.append(self.tokens[id_])
        return tokens

    def text(self, ids: Iterable[int]) -> str:
        """One line to show a person: the tokens before the first ``<eos>``, without padding."""
        tokens = []
        for id_ in ids:
            if id_ == self.EOS:
                break
            if id_ != self.PAD:
                tokens += self.decode([id_])
        return " ".join(tokens)

    def parse(self, text: str) -> list[str]:
        """Cut what a person typed into tokens.

        Text with a space in it is cut at the spaces. Text without one is cut into single
        characters where every symbol is one character long (``"312"`` is 3, 1, 2), and else is one
        token (``"12"`` where 12 is a symbol, or any word).
        """
        tokens = text.split()
        if len(tokens) == 1 and self._all_are_characters and tokens[0] not in self:
            return list(tokens[0])
        return tokens

    def save(self, path: Path | str) -> None:
        """Write the symbols as JSON."""
        content = json.dumps({"symbols": self.symbols}, ensure_ascii=False)
        half = Path(path).with_name(f".{Path(path).name}.{os.getpid()}")
        half.write_text(content + "\n", encoding="utf-8")
        half.replace(path)

    @classmethod
    def load(cls, path: Path | str) -> "Vocabulary":
        """Read what ``save`` wrote.

        Raises:
            ValueError: the file is missing, unreadable or not a vocabulary.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(
                f"the vocabulary {str(path)!r} cannot be read: {error.strerror}"
            ) from error
        except (ValueError, RecursionError) as error:  # broken JSON, or not UTF-8
            raise ValueError(f"the vocabulary {str(path)!r} is not valid JSON: {error}") from error
        symbols = content.get("symbols") if isinstance(content, dict) else None
        if not isinstance(symbols, list):
            raise ValueError(
                f'{str(path)!r} is not a vocabulary: it must be {{"symbols": [...]}} with text'
            )
        try:
            return cls(symbols)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{str(path)!r} is not a vocabulary: {error}") from error


def _check_symbols(symbols: Sequence[str]) -> None:
    if isinstance(symbols, str):
        raise TypeError(f"symbols must be a list of tokens, got one string {symbols!r}")
    for symbol in symbols:
        if not isinstance(symbol, str):
            raise TypeError(f"symbols must be text, got {symbol!r}")
        if symbol.encode(errors="replace").decode() != symbol:
            raise ValueError(f"a symbol must be whole characters, got {symbol!a}")
        if not symbol or symbol in Vocabulary.SPECIAL:
            special = ", ".join(Vocabulary.SPECIAL)
            raise ValueError(f"a symbol must not be empty or one of {special}, got {symbol!r}")
    if not symbols:
        raise ValueError("symbols must not be empty")
    if len(set(symbols)) < len(symbols):
        twice = next(symbol for symbol in symbols if list(symbols).count(symbol) > 1)
        raise ValueError(f"each symbol must be given once, got {twice!r} more than once")
