"""How a run's config is composed, checked, saved and read again: from words to a tree of values.

``tree`` knows which groups, options and keys there are, ``composing`` puts a config together,
``saved`` is that of a run, ``errors`` says what is wrong in a sentence, ``validation`` compares all
values with the signatures of what they are for, and ``trust`` with what a file may name.
"""

from mha_lab.config.composing import compose, finish
from mha_lab.config.errors import COUNTED_IN_STEPS, elsewhere, explain, first_line
from mha_lab.config.saved import CONFIG_FILE, load_run, override, read_yaml, save
from mha_lab.config.tree import (
    OWN_FOLDERS,
    WITH_PARTS,
    chosen_parts,
    complete,
    config_folder,
    costs,
    flat_keys,
    groups,
    option_files,
    options,
    own_folders,
    own_positions,
    search_path,
    usual_run_dir,
    with_folder,
    without_attention,
)

__all__ = [
    "CONFIG_FILE",
    "COUNTED_IN_STEPS",
    "OWN_FOLDERS",
    "WITH_PARTS",
    "chosen_parts",
    "complete",
    "compose",
    "config_folder",
    "costs",
    "elsewhere",
    "explain",
    "finish",
    "first_line",
    "flat_keys",
    "groups",
    "load_run",
    "option_files",
    "options",
    "override",
    "own_folders",
    "own_positions",
    "read_yaml",
    "save",
    "search_path",
    "usual_run_dir",
    "with_folder",
    "without_attention",
]
