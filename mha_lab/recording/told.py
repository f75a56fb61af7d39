"""What a recorder says of what it saw and did not record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from torch import nn

from mha_lab.recording.by_hand.softmaxes import Fate, Softmax


class Unrecorded(Enum):
    """Why an attention call that a recorder saw is not among its maps."""

    NOT_CHOSEN = "in modules that modules=... does not choose"
    OUTSIDE = "made by none of its modules; record the model that makes them"
    TRACED = "only traced or compiled; run the model itself"
    REPEATED = "made by a backward pass only; run the forward pass inside too"
    UNREADABLE = "not understood by the recorder"
    NO_NUMBERS = "made with tensors without numbers (meta device); use a real device"


_IS_NO_LOSS = (Unrecorded.NOT_CHOSEN, Unrecorded.OUTSIDE, Unrecorded.REPEATED)
"""Where something was recorded, these are as they should be."""

_FATES = {
    Fate.MULTIPLIED: (
        "{softmaxes} multiplied with values by hand, in {modules}; softmax=True records that"
    ),
    Fate.LOST: (
        "{softmaxes} in {modules}, whose results met other tensors in a way that is not followed; "
        "if that is attention, end it in weights @ values"
    ),
    Fate.CHOSE: "{softmaxes} in {modules}, whose results were only seen to choose something",
    Fate.UNSEEN: (
        "{softmaxes} in {modules}, whose results were not seen to be multiplied with values"
    ),
}

_MOST_NAMES = 3


@dataclass(frozen=True)
class Seen:
    """What a recorder saw, and did not record.

    Attributes:
        unrecorded: How many attention calls, and why not.
        softmaxes: Those that the model computed.
        scripted: What of the model is TorchScript that may be attention.
        error: Why a call was not understood.
        has_run: Whether a torch function was called by a module of the model.
    """

    unrecorded: Mapping[Unrecorded, int]
    softmaxes: Sequence[Softmax] = ()
    scripted: Sequence[str] = ()
    error: Exception | None = None
    has_run: bool = True


def why_empty(model: nn.Module, seen: Seen) -> str:
    """Say that nothing was recorded, and what was seen instead.

    Args:
        model: The model.
        seen: What was seen.

    Returns:
        A sentence, then the reasons.
    """
    reasons = [
        *_calls(seen.unrecorded, seen.error),
        *_softmaxes(seen.softmaxes),
        *_scripted(seen.scripted),
    ]
    if not reasons and not seen.has_run:
        reasons = [
            "no torch function was called by its modules inside the block, in the thread that "
            "opened it: it was not called there, or runs as TorchScript or another compiled graph"
        ]
    elif not reasons:
        reasons = [
            "its modules called no attention function of torch, nor a softmax that could be one "
            "(a kernel that torch does not know, as of flash_attn or xformers, is not seen; choose "
            "the scaled_dot_product_attention implementation of a model that uses one)"
        ]
    return f"no attention of {_class_name(model)} was recorded: " + "; ".join(reasons)


def what_is_missing(model: nn.Module, maps: int, seen: Seen) -> str | None:
    """Say what may be attention, and is not among the maps that were recorded; None if nothing.

    Args:
        model: The model.
        maps: How many maps there are.
        seen: What was seen.
    """
    lost = {why: count for why, count in seen.unrecorded.items() if why not in _IS_NO_LOSS}
    reasons = [*_calls(lost, seen.error), *_softmaxes(seen.softmaxes), *_scripted(seen.scripted)]
    if not reasons:
        return None
    of_model = f"{maps} attention map{'s' * (maps != 1)} of {_class_name(model)}"
    return f"{of_model} recorded; not among them: " + "; ".join(reasons)


def _scripted(scripted: Sequence[str]) -> list[str]:
    if not scripted:
        return []
    return [
        f"what ran in {_listed(scripted)}, TorchScript into which nobody can look; "
        "record the Python code"
    ]


def _calls(unrecorded: Mapping[Unrecorded, int], error: Exception | None) -> list[str]:
    return [
        f"{count} attention call{'s were' if count > 1 else ' was'} {why.value}"
        + (f" ({type(error).__name__}: {error})" if why is Unrecorded.UNREADABLE else "")
        for why, count in unrecorded.items()
    ]


def _softmaxes(softmaxes: Iterable[Softmax]) -> list[str]:
    """A reason for each fate that leaves attention unrecorded."""
    left = [one for one in softmaxes if one.may_be_attention]
    reasons = []
    for fate, sentence in _FATES.items():
        of_fate = [one for one in left if one.fate == fate]
        if of_fate:
            number = f"{len(of_fate)} softmax{'es' * (len(of_fate) > 1)}"
            reasons.append(sentence.format(softmaxes=number, modules=_names(of_fate)))
    return reasons


def _names(softmaxes: Sequence[Softmax]) -> str:
    return _listed(list(Counter(one.module for one in softmaxes)))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _class_name(model: nn.Module) -> str:
    return type(getattr(model, "_orig_mod", model)).__name__
