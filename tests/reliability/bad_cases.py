"""What bad_input.py tries: keys of the config tree with odd values, odd settings, damaged files."""

import inspect
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from mha_lab import config
from mha_lab.config.signatures import hints
from mha_lab.config.targets import KINDS, Kind, locate

SMALL = (
    "trainer.max_steps=2", "trainer.val_check_interval=1", "data.validation_size=20",
    "data.test_size=20", "data.batch_size=4", "trainer.enable_progress_bar=false",
    "model.embed_dim=8", "model.num_heads=2",
)  # fmt: skip
VALUES = (
    "null", "true", "''", "abc", "0", "-1", "1", "2", "3", "1.5", "1e3", "nan", "inf", "-inf",
    "1e400", "[1]", "[]", "{a:1}", "{}", "'../x'", "'/dev/null/x'", "'a b'", "${nope.nope}",
    "${seed}", "'\u0430'", "1000000", "1000000000000", str(10**30), "0x10", "'1'", "[[1]]",
    "{_target_:os.mkdir,path:mark}", "a=b", "(", "'", "x" * 300, "a,b", "[a,b]", "-0.0", "'\ud83d'",
)  # fmt: skip
SEQUENCES = ("", "1 2 3", "123", "1 x", "\u0661", "1 2 " * 5000, "${seed}", "a=b", "-h", "\ud83d")
KINDS_OF_DAMAGE = ("cut", "flip", "empty", "gone", "zeros", "other", "deep", "folder", "text",
                   "bomb", "line gone", "line twice")  # fmt: skip
TEXTS = (b"\xff", b"\x00", b"nan", b"${nope.nope}", b"-1", b"\n", b'"\\ud83d"', b"1e999", b"null")
BOMB = b"".join(
    [b"a0: &a0 [1,1,1,1,1,1,1,1,1]\n"]
    + [b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 12)]
)
OPENING = (
    ("evaluate", "run=run"),
    ("predict", "run=run", "1 2 3"),
    ("train", "resume=run", "trainer.max_steps=3"),
    ("report", "run"),
)
SETTINGS = (  # of the commands themselves: the last word lacks its value
    ("evaluate", "run=run", "lengths="), ("evaluate", "run=run", "lengths=1-3", "samples="),
    ("evaluate", "run=run", "checkpoint="), ("evaluate", "run=run", "trust="),
    ("evaluate", "run="), ("predict", "1 2", "run=run", "checkpoint="), ("predict", "1 2", "run="),
    ("predict", "1 2", "run=run", "figure="), ("report", "run", "by="), ("report", "run", "table="),
    ("report", "run", "metric="), ("report", "run", "name="), ("report", "run", "out="),
    ("report", ""), ("list", ""), ("new", "attention", "folder=made", ""), ("new", ""),
    ("new", "attention", "mine", "folder="), ("train", "resume="), ("", ), ("bench", ""),
    ("study", ""), ("study", "study", ""), ("study", "study", "trust="), ("check", ""),
    ("dashboard", "logdir="), ("dashboard", "logdir=run", "port="),
    ("dashboard", "logdir=run", "host="), ("dashboard", "logdir=run", ""),
    ("predict", "run=run", "input="), ("predict", "1 2", "run=run", "output="),
)  # fmt: skip
STUDY = f"""title: A study
question: Does it run?
source: none
settings: >-
  task=copy {" ".join(SMALL)} logger=csv callbacks.attention_maps=null
arms: {{position: {{none: position=none}}}}
seeds: 1
lengths: [1-10]
samples: 4
show: [sequence_accuracy, steps]
claims:
  - {{says: it does, measure: steps, of: {{position: none}}, at_least: 1}}
figure: {{kind: points, x: position, measure: steps}}
quick: {{seeds: 1}}
minutes: 1
"""


@dataclass(frozen=True)
class Case:
    """One command line, and what is done to the files of the folder before it."""

    words: tuple[str, ...]
    damage: Callable[[Path], None] | None = None
    done: str = ""


@dataclass(frozen=True)
class Key:
    """A key of an option, and the words that choose the option."""

    chosen: tuple[str, ...]
    key: str


def cases(n: int, seed: int, files: Sequence[Path], cached: Sequence[Path]) -> list[Case]:
    """So many cases; the same ones for the same seed.

    Args:
        n: how many.
        seed: of the choice.
        files: of a run.
        cached: of the cache.
    """
    chance = random.Random(seed)
    keys = keys_by_group()
    makers = [
        *[partial(_key, chance, keys)] * 9,
        *[partial(_damaged, chance, files, OPENING)] * 7,
        partial(_damaged, chance, cached, (("train", "task=copy", *SMALL, "hydra.run.dir=made"),)),
        *[partial(_override, chance, keys)] * 2,
        *[partial(_setting, chance)] * 2,
        partial(_checked, chance, keys),
        partial(_damaged, chance, [Path("study") / "study.yaml"], (("study", "study"),)),
        partial(_sequence, chance),
    ]
    return [chance.choice(makers)() for _ in range(n)]


def _key(chance: random.Random, keys: dict[str, list[Key]]) -> Case:
    chosen = chance.choice(keys[chance.choice(list(keys))])
    words = ("sweep", "sweep=random", "sweep.n_trials=1", "sweep.folder=made",
             "optimizer.lr=1e-3,1e-2") if chosen.key.startswith("sweep.") else (
             "train", "hydra.run.dir=made")  # fmt: skip
    word = _word(chance, chosen.key)
    key = chosen.key.lstrip("+~")
    rest = [one for one in (*words, *SMALL) if one.partition("=")[0] != key]
    has_task = any(one.startswith("task=") for one in chosen.chosen)
    return Case((*rest, *chosen.chosen, *(() if has_task else ("task=copy",)), word))


def _word(chance: random.Random, key: str) -> str:
    value = chance.choice(VALUES)
    plain = key.lstrip("+")
    return chance.choice([f"{key}={value}"] * 10 + [f"~{plain}", f"+{plain}.new={value}"])


def _override(chance: random.Random, keys: dict[str, list[Key]]) -> Case:
    chosen = chance.choice(keys[chance.choice(list(keys))])
    words = chance.choice((("evaluate", "run=run"), ("train", "resume=run")))
    return Case((*words, *chosen.chosen, _word(chance, chosen.key)))


def _checked(chance: random.Random, keys: dict[str, list[Key]]) -> Case:
    group = chance.choice(("attention", "position", "task"))
    chosen = chance.choice(keys[group])
    return Case(("check", *(chosen.chosen or (f"{group}=custom",)), _word(chance, chosen.key)))


def _setting(chance: random.Random) -> Case:
    *words, last = chance.choice(SETTINGS)
    return Case((*words, last + chance.choice(VALUES).strip("'")))


def _sequence(chance: random.Random) -> Case:
    return Case(("predict", "run=run", chance.choice(SEQUENCES)))


def keys_by_group() -> dict[str, list[Key]]:
    """Every key that any option of any group has: those of its YAML, and of its constructor."""
    root = OmegaConf.to_container(OmegaConf.load(config.config_folder() / "train.yaml"))
    plain = [Key((), key) for key in ("seed", "compile")]
    found = {"": plain, "data": _keys_of((), "data", root["data"], KINDS["data"])}
    for group in config.groups():
        if group == "experiment" or group.startswith("callbacks/"):
            continue
        prefix = group.replace("/", ".")
        kind = KINDS.get(group, Kind("a part"))
        for option, file in config.option_files(group).items():
            tree = OmegaConf.to_container(OmegaConf.load(file))
            if prefix == "callbacks":
                found[prefix] = [Key((), key) for key in config.flat_keys(tree, "callbacks.")]
                nodes = {f"callbacks.{name}": node for name, node in tree.items() if node}
            else:
                nodes = {prefix: tree}
            words = () if group in ("sweep", "callbacks") else (f"{group}={option}",)
            for place, node in nodes.items():
                found.setdefault(prefix, []).extend(_keys_of(words, place, node, kind))
        found[prefix].append(Key((), group))
    return found


def _keys_of(words: tuple[str, ...], place: str, node: Any, kind: Kind) -> list[Key]:
    keys = [key for key in config.flat_keys(node, f"{place}.") if "defaults" not in key]
    target = node.get("_target_") if isinstance(node, dict) else None
    if target:
        taken = set(hints(locate(place, target, kind))) | set(
            inspect.signature(locate(place, target, kind)).parameters
        )
        keys += [f"+{place}.{name}" for name in sorted(taken) if f"{place}.{name}" not in keys]
    return [Key(words, key) for key in keys]


def _damaged(
    chance: random.Random, files: Sequence[Path], commands: Sequence[tuple[str, ...]]
) -> Case:
    file, seed = chance.choice(files), chance.randrange(2**32)
    kind = random.Random(seed).choice(KINDS_OF_DAMAGE)
    words = chance.choice(commands)
    return Case(words, partial(_damage, file, kind, seed), f"{kind} {file}")


def _damage(file: Path, kind: str, seed: int, folder: Path) -> None:
    chance = random.Random(seed + 1)
    place = folder / file
    content = bytearray(place.read_bytes())
    at = chance.randrange(len(content) + 1)
    lines = content.splitlines(keepends=True)
    line = chance.randrange(len(lines)) if lines else 0
    if kind == "cut":
        del content[at:]
    elif kind == "flip" and content:
        for _ in range(chance.randrange(1, 20)):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif kind == "empty":
        content.clear()
    elif kind == "zeros":
        content[at : at + 100] = bytes(100)
    elif kind == "other":
        content = bytearray(chance.randbytes(300))
    elif kind == "deep":
        content = bytearray(b"[" * 100_000)
    elif kind == "bomb":
        content = bytearray(BOMB)
    elif kind == "text":
        content[at:at] = chance.choice(TEXTS)
    elif kind.startswith("line"):
        content = bytearray(
            b"".join(
                lines[:line] + lines[line:][:1] * (2 * (kind == "line twice")) + lines[line + 1 :]
            )
        )
    place.unlink()
    if kind == "folder":
        place.mkdir()
    elif kind != "gone":
        place.write_bytes(content)
