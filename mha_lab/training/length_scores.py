"""How well a model does on sequences of some lengths: five numbers a sequence, means and errors.

The question that length generalization asks (Ruoss et al. 2023, "Randomized Positional Encodings
Boost Length Generalization of Transformers"; Newman et al. 2020, "The EOS Decision and Length
Extrapolation", on the length being told).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mha_lab.models.interface import SequenceModel
from mha_lab.tasks.batch import Batch, blanks, trim
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.training.module import accuracies

MEASURES = {
    "sequence_accuracy": "sequence accuracy",
    "sequence_accuracy_length_given": "sequence accuracy, length given",
    "token_accuracy_forced": "token accuracy, teacher forced",
    "token_accuracy_free": "token accuracy, free running",
}
"""Names of the measures, and how a person reads them."""

_BATCH = 250  # sequences at once


@torch.no_grad()
def score(model: SequenceModel, batch: Batch) -> dict[str, Float[Tensor, " N"]]:
    """Each sequence's length and measures.

    ``sequence_accuracy`` is 1 where greedy decoding gives the whole target and then ``<eos>``;
    with the length given, ``<eos>`` cannot be chosen before the target's end. The token accuracies
    are shares of the target's symbols, ``<eos>`` not counted, so that they compare with a task's
    chance level; NaN where a target has none.

    Args:
        model: put into evaluation mode meanwhile.
        batch: sequences and their right targets.
    """
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    try:
        parts = [
            _score(model, trim(Batch(*(rows[i : i + _BATCH].to(device) for rows in batch))))
            for i in range(0, len(batch.source), _BATCH)
        ]
    finally:
        model.train(was_training)
    return {name: torch.cat([part[name] for part in parts]).cpu() for name in parts[0]}


def summarise(scores: Mapping[str, Tensor]) -> dict[str, Any]:
    """How many sequences there are, and of each measure the mean and its standard error."""
    row: dict[str, Any] = {"sequences": len(scores["length"])}
    for name in MEASURES:
        values = scores[name][~scores[name].isnan()].double()
        row[name] = float(values.mean()) if len(values) else float("nan")
        spread = float(values.std()) if len(values) > 1 else float("nan")
        row[f"{name}_error"] = spread / max(1, len(values)) ** 0.5
    return row


def by_length(scores: Mapping[str, Tensor]) -> list[dict[str, Any]]:
    """One summary for each length, in ascending order."""
    lengths: Sequence[int] = sorted(set(scores["length"].int().tolist()))
    return [
        {"length": n, **summarise({k: v[scores["length"] == n] for k, v in scores.items()})}
        for n in lengths
    ]


def _score(model: SequenceModel, batch: Batch) -> dict[str, Tensor]:
    source, target = batch
    logits = model(source, target)
    is_symbol = (target != Vocabulary.PAD) & (target != Vocabulary.EOS)
    symbols = is_symbol.sum(1)
    is_whole = accuracies(logits, target)[1]
    forced = ((logits.argmax(-1) == target) & is_symbol).sum(1)
    logits[..., Vocabulary.EOS] = -torch.inf
    told = ((logits.argmax(-1) == target) & is_symbol).sum(1)
    free = torch.where(is_whole, symbols, 0)
    wrong = (~is_whole).nonzero()[:, 0]
    if len(wrong):  # of the others, greedy decoding gives the target: see ``accuracies``
        output = _decode(model, source[wrong], target[wrong])
        free[wrong] = ((output == target[wrong]) & is_symbol[wrong]).sum(1)
    return {
        "length": ((source != Vocabulary.PAD).sum(1) - 1).float(),
        "sequence_accuracy": is_whole.float(),
        "sequence_accuracy_length_given": (told == symbols).float(),
        "token_accuracy_forced": forced / symbols,
        "token_accuracy_free": free / symbols,
    }


def _decode(
    model: SequenceModel, source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]
) -> Int[Tensor, "N T"]:
    """What greedy decoding gives, as wide as the target."""
    nothing = blanks(target)
    asked: dict[str, Any] = {"blanks": nothing} if nothing.any() else {}
    output = model.generate(source, max_length=target.shape[1], **asked)
    return torch.nn.functional.pad(output, (0, target.shape[1] - output.shape[1]))
