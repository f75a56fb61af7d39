"""What Hydra and OmegaConf refuse, said in one sentence, with the nearest right word."""

import re
from collections.abc import Sequence

from omegaconf import OmegaConf

from mha_lab.config.lightning_ranges import TrainerKeys
from mha_lab.config.tree import WITH_PARTS, groups, known_keys, option_files, options
from mha_lab.errors import nearest

_STEPS = "a run is counted in steps, trainer.max_steps=N: with data.train_size=M sequences, an "
_STEPS += "epoch is M / data.batch_size of them"
COUNTED_IN_STEPS = {"trainer.max_epochs": _STEPS, "trainer.min_epochs": _STEPS}
"""Keys of Lightning that have no meaning here, and what does instead."""
_EPOCHS = ("epoch", "epochs", "max_epochs", "min_epochs", "num_epochs", "n_epochs")


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def explain(error: BaseException, overrides: Sequence[str] = ()) -> str:
    """Turn an error of Hydra or OmegaConf into one sentence, with the nearest right word."""
    text = str(error)
    if match := re.search(r"Ambiguous value for argument '([^=]+)=(.*)'", text):
        key, values = match[1], match[2]
        return (
            f"{key}={values} are several values, and this is one run: train -m makes a run of "
            f"each (a list is written {key}=[{values}])"
        )
    if "override_grammar" in text:
        given = f" in: {' '.join(overrides)}" if overrides else ""
        return f"cannot read an override ({first_line(error)}){given}; write key=value"
    if match := re.search(r"Could not override '([^']+)'", text):
        key = match[1]
        if key in groups() and "/" in key:
            whole = key.split("/")[0]
            return (
                f"{key} is a part of {whole}={WITH_PARTS} and of what is made from it, and the "
                f"{whole} chosen here has no parts; choose {whole}={WITH_PARTS}, or leave {key} out"
            )
        if key in groups() and "defaults list" in text:
            return f"{key!r} is not chosen by default; add it with +{key}=OPTION"
        other = elsewhere(key) or nearest(key.split("@")[0], known_keys())
        return f"unknown key or group {key!r}{other}"
    if match := re.search(r"Could not find '([^']+)/([^'/]+)'", text):
        group, option = match[1], match[2]
        known = options(group) if group in groups() else {}
        return (
            f"{group}={option} is not an option{nearest(option, known)}"
            f" (there are: {', '.join(known)})"
        )
    if match := re.search(r"An item is already at '([^']+)'", text):
        return f"{match[1]} has a value already: change it without a plus sign, {match[1]}=VALUE"
    if match := re.search(r"Key '([^']+)' is not in struct", text):
        other = elsewhere(match[1]) or nearest(match[1], known_keys())
        return f"unknown key {match[1]!r}{other}"
    return " ".join(text.split()) or type(error).__name__


def elsewhere(key: str) -> str:
    """Which option has a key that the chosen one does not: the end of a sentence, or nothing."""
    if key.rpartition(".")[2] in _EPOCHS:
        return f": {_STEPS}"
    if key in {f"trainer.{name}" for name in TrainerKeys.__annotations__}:
        return f"; Lightning's Trainer takes it, but no config names it: add it with +{key}="
    root, name = key.split(".")[0], key.rpartition(".")[2]
    places = [group for group in groups() if group.split("/")[0] == root]
    found = [f"{group}={name}" for group in places if name in option_files(group)]
    for group in places:
        files = sorted(option_files(group).items())
        having = [option for option, file in files if name in OmegaConf.load(file)]
        if having:
            most = having[:6] + ["..."] * (len(having) > 6)
            found.append(f"{group.replace('/', '.')}.{name} with {group}={'|'.join(most)} alone")
    return f"; there is {', '.join(found)}" if found else ""
