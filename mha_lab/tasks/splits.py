"""Which sequences are for training, which for validation and which for the test.

A hash of the sequence itself decides, so the answer is the same in every process and for every
seed, whatever else is drawn. Of 16 equal buckets, validation and test have one each.

The hash multiplies each id by a random odd 64-bit number of its position, adds up modulo 2^64
(multilinear hashing: Dietzfelbinger, Hagerup, Katajainen and Penttonen, 1997, "A Reliable
Randomized Algorithm for the Closest-Pair Problem") and mixes the bits with the last steps of
SplitMix64 (Steele, Lea and Flood, 2014, "Fast Splittable Pseudorandom Number Generators").
"""

from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Int
from torch import Tensor

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
BUCKETS = 16
_BUCKET_OF = {"validation": 0, "test": 1}

_STEP, _FIRST, _SECOND = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_27, _30, _31, _60 = (np.uint64(shift) for shift in (27, 30, 31, 60))


def is_in(split: Split, rows: Int[Tensor, "N L"]) -> Bool[Tensor, " N"]:
    """Tell which sequences belong to a split.

    Args:
        split: ``"train"``, ``"validation"`` or ``"test"``.
        rows: (N, L) ids on the CPU, padded on the right with 0, which does not count.
    """
    bucket = sequence_hash(rows) >> _60
    if split == "train":
        return torch.from_numpy(bucket >= len(_BUCKET_OF))
    return torch.from_numpy(bucket == _BUCKET_OF[split])


def sequence_hash(rows: Int[Tensor, "N L"]) -> npt.NDArray[np.uint64]:
    """64 bits for each sequence, independent of process, machine and padding."""
    ids = rows.long().numpy().view(np.uint64)  # the same bits: ids are never negative
    return _mix(ids @ _multipliers(ids.shape[1]))


def batch_seed(seed: int, index: int) -> int:
    """A seed for batch ``index`` of the run with ``seed``: unrelated for every pair of the two."""
    mixed = _mix(np.array([seed], dtype=np.uint64)) + np.uint64(index)
    return int(_mix(mixed)[0] >> np.uint64(1))


@lru_cache(maxsize=64)
def _multipliers(width: int) -> npt.NDArray[np.uint64]:
    return _mix(np.arange(1, width + 1, dtype=np.uint64)) | np.uint64(1)


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64: one step and its output, for arrays; arithmetic is modulo 2^64."""
    z = values + _STEP
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)
