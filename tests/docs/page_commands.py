"""The commands that the project's pages show, made small enough to be run by a test."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("experiments/*/README.md")]
)
_START = re.compile(r"(?:\S+=\S+ )*(?:\S*python -m )?mha_lab (?=[a-z])")

SMALL = {
    "trainer.max_steps": "2",
    "trainer.val_check_interval": "2",
    "trainer.log_every_n_steps": "1",
    "trainer.enable_progress_bar": "false",
    "data.validation_size": "23",
    "data.test_size": "29",
    "data.batch_size": "7",
}
"""What makes a training run short; it wins over what a page says, which is read all the same."""

NOT_RUN = {
    "hydra/launcher=": "needs a plugin or a cluster; tests/sweeping/test_launchers.py runs them",
    "sbatch": "needs SLURM",
    "postgresql:": "needs a server; tests/sweeping/test_sweep_postgres.py runs one",
    " dashboard": "serves until it is stopped; tests/tensorboard starts it",
    " study ": "trains dozens of runs; tests/studies runs each in a tiny form",
    " bench ": "measures for minutes; tests/harness runs each in its smallest form",
    "...": "an ellipsis, not a command",
}


@dataclass(frozen=True)
class Command:
    """A command of a page."""

    page: Path
    line: int
    text: str

    @property
    def why_not(self) -> str:
        """Why it is not run; empty for one that is."""
        return next((why for sign, why in NOT_RUN.items() if sign in f" {self.text} "), "")

    @property
    def is_step(self) -> bool:
        """Whether it goes into a folder, where the commands after it are meant to be run."""
        return bool(re.fullmatch(r"cd [\w./-]+", self.text))

    @property
    def words(self) -> list[str]:
        """What follows ``python -m mha_lab``."""
        return shlex.split(_START.sub("", self.text, count=1), comments=True)

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def commands_of(page: Path) -> list[Command]:
    """Every ``mha_lab`` command in a page's code blocks and between backticks, in order."""
    found = []
    is_code, text, first = False, "", 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
            continue
        if not is_code:
            found += [Command(page, number, c) for c in re.findall(r"`([^`]+)`", line)]
            continue
        text, first = (text + line.strip(), first) if text else (line.strip(), number)
        if text.endswith("\\"):
            text = text[:-1]
            continue
        found.append(Command(page, first, text))
        text = ""
    commands = [c for c in found if _is_command(c)]
    is_used = any(not command.is_step for command in commands)
    return commands if is_used else []


def _is_command(command: Command) -> bool:
    is_wrapped = "mha_lab sweep" in command.text and bool(command.why_not)
    return command.is_step or bool(_START.match(command.text)) or is_wrapped


def made_small(words: list[str]) -> list[str]:
    """The same command with tiny runs, few values a key and few trials."""
    command, *rest = words
    if command == "train" and not any(word.startswith("resume=") for word in rest):
        return [command, *map(_fewer, rest), *_small_words(rest)]
    if command == "train":
        return [command, *rest, "trainer.max_steps=3", "trainer.enable_progress_bar=false"]
    if command == "sweep":
        kept = [word for word in rest if not word.startswith("sweep.n_trials=")]
        return [command, *kept, *_small_words(rest), "sweep.n_trials=2", "sweep.pruner=none"]
    if command == "evaluate":
        return [command, *rest, "data.test_size=31"]
    return words


def _small_words(rest: list[str]) -> list[str]:
    given = {word.lstrip("+").partition("=")[0] for word in rest}
    return [f"{key}={value}" for key, value in SMALL.items() if key not in given]


def _fewer(word: str) -> str:
    """``seed=0,1,2,3`` as ``seed=0,1``: two runs show that several work."""
    key, sign, value = word.partition("=")
    if not sign or any(sign in value for sign in "[({'\""):
        return word
    return f"{key}={','.join(value.split(',')[:2])}"
