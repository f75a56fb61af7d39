"""Which lengths a training batch may hold, as training goes on.

The curricula of Delétang et al. 2023, "Neural Networks and the Chomsky Hierarchy", and Ruoss et al.
2023, "Randomized Positional Encodings Boost Length Generalization of Transformers".
"""

from dataclasses import dataclass
from typing import Literal

from mha_lab.ranges import Size

Kind = Literal["uniform", "fixed", "staged"]
KINDS: tuple[Kind, ...] = ("uniform", "fixed", "staged")


@dataclass(frozen=True, kw_only=True)
class Curriculum:
    """Lengths of training batches.

    Args:
        kind: ``uniform``: all lengths, always; ``fixed``: the longest alone; ``staged``: those up
            to a limit that rises.
        start: the first limit.
        every: batches until the limit rises.
        step: by how much.

    Raises:
        ValueError: an unknown kind, or a number below 1.
    """

    kind: Kind = "uniform"
    start: Size = 1
    every: Size = 100
    step: Size = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"curriculum must be one of {', '.join(KINDS)}, got {self.kind!r}")
        for name in ("start", "every", "step"):
            if getattr(self, name) < 1:
                raise ValueError(f"curriculum_{name} must be at least 1, got {getattr(self, name)}")

    def bounds(self, index: int, *, shortest: int, longest: int) -> tuple[int, int]:
        """The least and the greatest length of batch ``index``, counted from 0.

        Args:
            index: which batch.
            shortest: the shortest sequence that training has.
            longest: the longest.
        """
        if self.kind == "uniform":
            return shortest, longest
        if self.kind == "fixed":
            return longest, longest
        limit = self.start + self.step * (index // self.every)
        return shortest, min(max(limit, shortest), longest)
