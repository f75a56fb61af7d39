"""The sort demo of minGPT, written again from its description: its set, its model, its loop.

Karpathy, minGPT (2022), ``demo.ipynb``: sequences of six digits out of three, a quarter of all held
out as test by a hash; gpt-nano (three blocks of three heads, width 48, dropout 0.1, learned
positions, the tanh form of GELU), initialised as GPT-2; AdamW with a constant learning rate of
5e-4, betas 0.9 and 0.95, weight decay 0.1 on the matrices alone, gradients clipped at norm 1;
batches of 64, each sequence made when it is asked for.
"""

import math
import pickle
import zlib
from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler

LENGTH, DIGITS = 6, 3
WIDTH, HEADS, BLOCKS, DROPOUT = 48, 3, 3, 0.1
BATCH, LR, BETAS, DECAY, CLIP = 64, 5e-4, (0.9, 0.95), 0.1, 1.0
_IGNORED = -1


def is_test(digits: list[int]) -> bool:
    """Whether a sequence belongs to the quarter held out; the same in every process."""
    return zlib.crc32(pickle.dumps(digits)) % 4 == 0


class SortSet(Dataset[tuple[Tensor, Tensor]]):
    """Training sequences, made one by one: input and sorted output joined, to predict the next."""

    def __len__(self) -> int:
        """As long as one likes; the sampler draws with replacement."""
        return 10_000

    def __getitem__(self, index: int) -> tuple[Int[Tensor, " 11"], Int[Tensor, " 11"]]:
        """A fresh sequence: what is read, and what is to be said, nothing before the output."""
        while True:
            digits = torch.randint(DIGITS, (LENGTH,))
            if torch.rand(1).item() < 0.5 and torch.unique(digits).numel() > LENGTH // 2:
                continue  # more with many repeats
            if not is_test(digits.tolist()):
                return pair(digits)


def pair(digits: Int[Tensor, " 6"]) -> tuple[Int[Tensor, " 11"], Int[Tensor, " 11"]]:
    """A sequence as the model reads it, and what it should say."""
    whole = torch.cat([digits, digits.sort().values])
    said = whole[1:].clone()
    said[: LENGTH - 1] = _IGNORED
    return whole[:-1], said


def test_pairs() -> tuple[Int[Tensor, "N 11"], Int[Tensor, "N 11"]]:
    """All test sequences."""
    held_out = [torch.tensor(d) for d in product(range(DIGITS), repeat=LENGTH) if is_test(list(d))]
    read, said = zip(*map(pair, held_out), strict=True)
    return torch.stack(read), torch.stack(said)


class Block(nn.Module):
    """Causal attention and a feed-forward part, each after a normalisation and added."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_feedforward = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.hidden = torch.ones(2 * LENGTH - 1, 2 * LENGTH - 1).triu(1).bool()

    def forward(self, x: Float[Tensor, "N L E"]) -> Float[Tensor, "N L E"]:
        """One block."""
        x = x + self.attend(self.before_attention(x))
        inside = self.up(self.before_feedforward(x))
        gelu = 0.5 * inside * (
            1 + torch.tanh(math.sqrt(2 / math.pi) * (inside + 0.044715 * torch.pow(inside, 3.0)))
        )  # fmt: skip
        return x + F.dropout(self.down(gelu), DROPOUT, self.training)

    def attend(self, x: Float[Tensor, "N L E"]) -> Float[Tensor, "N L E"]:
        """Attention, written out."""
        N, L, _ = x.shape
        q, k, v = (
            part.view(N, L, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in self.qkv(x).split(WIDTH, dim=2)
        )
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(WIDTH // HEADS))
        scores = scores.masked_fill(self.hidden[:L, :L], -math.inf)
        y = F.dropout(F.softmax(scores, dim=-1), DROPOUT, self.training) @ v
        whole: Tensor = self.out(y.transpose(1, 2).contiguous().view(N, L, WIDTH))
        return F.dropout(whole, DROPOUT, self.training)


class Nano(nn.Module):
    """gpt-nano."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(DIGITS, WIDTH)
        self.places = nn.Embedding(2 * LENGTH - 1, WIDTH)
        self.dropout = nn.Dropout(DROPOUT)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, DIGITS, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                is_last = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / (math.sqrt(2 * BLOCKS) if is_last else 1))
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, read: Int[Tensor, "N L"]) -> Float[Tensor, "N L V"]:
        """Logits of the next digit."""
        places = torch.arange(read.shape[1]).unsqueeze(0)
        x = self.dropout(self.tokens(read) + self.places(places))
        return self.head(self.norm(self.blocks(x)))  # type: ignore[no-any-return]


def train(model: Nano) -> Iterator[int]:
    """The loop; yields the number of iterations done after each of them."""
    matrices = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
    known = set(matrices)
    others = [p for p in model.parameters() if p not in known]
    groups = [
        {"params": matrices, "weight_decay": DECAY},
        {"params": others, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS)
    data = SortSet()
    sampler: Any = RandomSampler(data, replacement=True, num_samples=10**10)
    for done, (read, said) in enumerate(DataLoader(data, batch_size=BATCH, sampler=sampler), 1):
        logits = model(read)
        loss = F.cross_entropy(logits.view(-1, DIGITS), said.view(-1), ignore_index=_IGNORED)
        model.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        yield done


@torch.no_grad()
def is_solved(model: Nano, read: Int[Tensor, "N 11"], said: Int[Tensor, "N 11"]) -> bool:
    """Whether greedy decoding sorts every sequence.

    That is so exactly where the likeliest digit is right at every place of the right output.
    """
    model.eval()
    best = model(read).argmax(-1)
    model.train()
    return bool(((best == said) | (said == _IGNORED)).all())
