"""Write docs/mechanisms.md and docs/positions.md from the config folders and the docstrings.

python docs/make_catalog.py

Run it when an option is added or a docstring changes; a test compares.
"""

import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf
from torch import nn

from mha_lab.build import build
from mha_lab.config import WITH_PARTS, compose, costs, flat_keys, groups, option_files, options
from mha_lab.models.checks import check_use
from mha_lab.models.decoder import Decoder
from mha_lab.positions.interface import make_encoding, place_of

HERE = Path(__file__).parent
E, H = 24, 4
NOTE = "<!-- written by docs/make_catalog.py: change docstrings and configs, then run it -->"
PROBES = {"embeddings": "sinusoidal", "queries and keys": "rotary", "scores": "alibi",
          "scores by content": "cope"}  # fmt: skip


def main() -> None:
    """Write both pages."""
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """The text of each page by its name."""
    return {"mechanisms.md": mechanisms(), "positions.md": positions()}


def mechanisms() -> str:
    """Every mechanism, then every part of ``attention=composed``."""
    rows, sections = [], []
    for name, line in options("attention").items():
        factory = _made("attention", name)
        cells = [_yes(factory, is_causal=True), _yes(factory), _yes(factory, is_cross=True)]
        cells += [_positions_of(factory), costs("attention").get(name, "L·S")]
        rows.append([f"[{name}](#{name})", *cells])
        sections += [f"### {name}", "", _sentence(line), "", *_body(name, factory)]
    parts = []
    for group in groups():
        if not group.startswith("attention/"):
            continue
        parts += [f"## {group}", ""]
        for name, line in options(group).items():
            target = _target(compose([f"{group}={name}"], run_dir="."), group.replace("/", "."))
            parts += [f"### {group}={name}", "", _sentence(line), "", *_docstring(target)]
    return "\n".join([
        "# Mechanisms", "", NOTE, "",
        "Choose one with `attention=NAME`, and parts of `attention=composed` with "
        "`attention/weighting=NAME`, `attention/pattern=NAME`, `attention/mixing=NAME`. All of "
        "them take padding. *Positions* says where an encoding may act (`position=NAME`, see "
        "[positions](positions.md)); *cost* is in the lengths L and S, in training (figures: "
        "[benchmarks](benchmarks.md)).", "",
        *_table(["mechanism", "causal", "both ways", "cross", "positions", "cost"], rows), "",
        "## One by one", "", *sections, *parts,
    ]).rstrip() + "\n"  # fmt: skip


def positions() -> str:
    """Every encoding."""
    rows, sections = [], []
    for name, line in options("position").items():
        factory = _made("position", name)
        encoding = make_encoding(factory, E, num_heads=H, is_causal=True)
        shared = "by all layers" if getattr(encoding, "is_shared", True) else "one a layer"
        place = place_of(encoding)
        both = _answers(lambda f=factory: check_use(
            make_encoding(f, E, num_heads=H, is_causal=False), is_causal=False, is_cross=False
        ))  # fmt: skip
        longest = getattr(encoding, "max_length", None)
        rows.append([
            f"[{name}](#{name})", place, shared if place != "embeddings" else "-",
            "both" if both else "causal", str(longest) if longest else "any",
            costs("position").get(name, "-"),
        ])  # fmt: skip
        sections += [f"### {name}", "", _sentence(line), "", *_docstring(_target_of(factory))]
    return "\n".join([
        "# Positions", "", NOTE, "",
        "Choose one with `position=NAME`, whatever the mechanism. *Acts on* says where: embeddings "
        "any model takes; queries and keys, and scores that read them, need a mechanism that lets "
        "them in; a bias of the scores reaches every mechanism that takes a float mask. "
        "Cross-attention has no positions. *Longest* is with the defaults.", "",
        *_table(["encoding", "acts on", "shared", "calls", "longest", "cost"], rows), "",
        "## One by one", "", *sections,
    ]).rstrip() + "\n"  # fmt: skip


@functools.cache
def _made(group: str, name: str) -> Callable[..., nn.Module]:
    factory: Callable[..., nn.Module] = build(compose([f"{group}={name}"], run_dir="."), group)
    return factory


def _target(cfg: Any, key: str) -> Any:
    return _target_of(build(cfg, key))


def _target_of(factory: Any) -> Any:
    return getattr(factory, "func", factory)


def _body(name: str, factory: Callable[..., nn.Module]) -> list[str]:
    """What a mechanism is made of, or what its own file says."""
    if name != WITH_PARTS and _target_of(factory) is _target_of(_made("attention", WITH_PARTS)):
        words = _differences(name)
        parts = [word for word in words if "/" in word] or [WITH_PARTS]
        links = ", ".join(f"[{part}](#{re.sub('[/=]', '', part)})" for part in parts)
        told = (
            f"The same as `attention={WITH_PARTS} {' '.join(words)}`: formula and source at {links}"
        )
        return [f"{told}.", ""]
    return _docstring(_target_of(factory))


def _differences(name: str) -> list[str]:
    """The words that make a mechanism of ``composed``: parts by their options, then values."""
    usual: Any = OmegaConf.to_container(OmegaConf.load(option_files("attention")[name]))
    overridden = [one for one in usual.get("defaults", []) if isinstance(one, dict)]
    parts = [
        f"attention/{key.removeprefix('override ')}={option}"
        for one in overridden
        for key, option in one.items()
    ]
    own = _values([f"attention={name}"])
    plain = _values([f"attention={WITH_PARTS}", *parts])
    return [*parts, *(f"{key}={value}" for key, value in own.items() if value != plain.get(key))]


def _values(words: list[str]) -> dict[str, Any]:
    """Every value of the attention that words choose, by its dotted key."""
    cfg = compose(words, run_dir=".")
    keys = flat_keys(OmegaConf.to_container(cfg.attention), "attention.")
    found = {key: OmegaConf.select(cfg, key) for key in keys}
    return {key: value for key, value in found.items() if not OmegaConf.is_config(value)}


def _docstring(target: Any) -> list[str]:
    """A module's docstring in Markdown, without what is not ours."""
    if not target.__module__.startswith("mha_lab."):
        return []
    text = inspect.getdoc(inspect.getmodule(target)) or ""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    text = re.sub(r"^\.\. \[(\d+)\] ", r"\n[\1]: ", text, flags=re.MULTILINE)
    text = re.sub(r"\[(\d+)\]_", r"[\1]", text).replace("] [", "], [")
    # A reference of Markdown would be hidden: what is cited is to be read.
    text = re.sub(r"^\[(\d+)\]: ", r"\\[\1] ", text, flags=re.MULTILINE)
    text = re.sub(r"\n{3,}", "\n\n", text)
    return [text, ""]


def _sentence(line: str) -> str:
    return f"*{line}.*"


def _yes(
    factory: Callable[..., nn.Module], *, is_causal: bool = False, is_cross: bool = False
) -> str:
    module = factory(E, H, dropout=0.0)
    can = _answers(lambda: check_use(module, is_causal=is_causal, is_cross=is_cross))
    return "yes" if can else "no"


def _positions_of(factory: Callable[..., nn.Module]) -> str:
    """Where an encoding may act with a mechanism, found by trying."""
    found = [place for place, name in PROBES.items() if _answers(lambda n=name: _try(factory, n))]
    return "any" if len(found) == len(PROBES) else ", ".join(found)


def _try(factory: Callable[..., nn.Module], position: str) -> None:
    ids = torch.ones(1, 3, dtype=torch.long)
    sizes = {"embed_dim": E, "num_heads": H, "num_layers": 1}
    Decoder(7, attention=factory, position=_made("position", position), **sizes)(ids, ids)


def _answers(question: Callable[[], Any]) -> bool:
    try:
        question()
    except ValueError:
        return False
    return True


def _table(columns: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]


if __name__ == "__main__":
    main()
