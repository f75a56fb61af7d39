"""Multi-query associative recall: pairs of a key and its value; then each key asks for its value.

A source of length L begins with D pairs, D being ``pairs`` or, where that has no room, L // 4. The
rest is places of two tokens; each key stands once more, first in a place of its own. The g-th place
is chosen with a weight of g^(power - 1): near ones more often, by a power law. Everything else is
filled with symbols drawn from the whole vocabulary, or with 0 if ``random_fillers`` is off. Asked
is the value at each token after the pairs that is one of their keys (so too at a filler that
happens to be one); nothing else counts.

Of ``vocab_size`` symbols, 0 is the filler, the rest of the first half are keys, the others values;
no key and no value stands twice in the pairs.

Example: ``1 5 2 7 2 0 1 0`` → ``_ _ _ _ 7 _ 5 _``

Source: Arora et al. (2023), "Zoology: Measuring and Improving Recall in Efficient Language Models",
section 3 and appendix; 8,192 symbols, lengths 64 to 512 with 4 to 64 pairs, power 0.01 there.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Positive, Size
from mha_lab.tasks.drawing import distinct, padded, weighted
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST


def mqar_task(
    *,
    min_length: Size = 16,
    max_length: Size = 32,
    vocab_size: Size = 64,
    pairs: Size = 4,
    power: Positive = 0.01,
    random_fillers: bool = True,
) -> GeneratedTask:
    """Make the task.

    Args:
        min_length: the shortest source; see ``GeneratedTask``.
        max_length: the longest.
        vocab_size: how many symbols.
        pairs: how many pairs there are, at most.
        power: of the law of gaps; 1 makes them uniform.
        random_fillers: whether other tokens are random symbols, or all 0.

    Raises:
        ValueError: there are too few keys for the pairs.
    """
    keys, values = vocab_size // 2 - 1, vocab_size - vocab_size // 2
    if keys < pairs:
        raise ValueError(
            f"vocab_size must be at least 2 * pairs + 2, so that no key stands twice; got "
            f"vocab_size={vocab_size} and pairs={pairs}"
        )

    def sampler(lengths: Tensor, width: int, generator: torch.Generator) -> Tensor:
        rows, columns = len(lengths), torch.arange(width)
        d = _pairs(lengths, pairs)[:, None]
        context = torch.stack(
            [
                FIRST + 1 + distinct(rows, pairs, keys, generator),
                FIRST + 1 + keys + distinct(rows, pairs, values, generator),
            ],
            dim=2,
        ).flatten(1)
        source = torch.full((rows, width), FIRST)
        if random_fillers:
            source += torch.randint(vocab_size, source.shape, generator=generator)
        known = torch.nn.functional.pad(context, (0, width))[:, :width]
        source = torch.where(columns < 2 * d, known, source)
        places = torch.arange(max(1, width // 2))
        weights = (places + 1.0) ** (power - 1) * (places < (lengths[:, None] - 2 * d) // 2)
        gaps = weighted(min(pairs, len(places)), weights, generator)
        for number in range(gaps.shape[1]):
            place = (2 * d + 2 * gaps[:, number, None]).clamp(max=width - 1)
            key = torch.where(number < d, context[:, 2 * number, None], source.gather(1, place))
            source.scatter_(1, place, key)
        return padded(source, lengths)

    def rule(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
        columns = torch.arange(source.shape[1])
        is_context = columns < 2 * _pairs(lengths, pairs)[:, None]
        is_key = is_context & (columns % 2 == 0)
        value_of = torch.zeros(len(source), FIRST + vocab_size, dtype=torch.long)
        value_of.scatter_(1, source * is_key, source.roll(-1, 1))
        value_of[:, 0] = 0  # where all that is no key was written
        return value_of.gather(1, source).masked_fill_(is_context, 0)

    return GeneratedTask(
        "mqar", rule, min_length=min_length, max_length=max_length, vocab_size=vocab_size,
        sampler=sampler, along=True, answers=values,
        settings={"vocab_size": vocab_size, "pairs": pairs, "power": power,
                  "random_fillers": random_fillers},
    )  # fmt: skip


def _pairs(lengths: Int[Tensor, " N"], pairs: int) -> Int[Tensor, " N"]:
    return (lengths // 4).clamp(max=pairs)
