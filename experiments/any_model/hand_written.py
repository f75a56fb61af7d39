"""Attention that is written by hand, as softmax(Q Kᵀ) V: no function of torch to recognise."""

import sys
import warnings

import torch
from torch import nn

from mha_lab import record_attention


class HandWritten(nn.Module):
    """Every word looks at the words that are like it: queries and keys are the embeddings."""

    def __init__(self, words, width):
        super().__init__()
        self.embedding = nn.Embedding(words, width)

    def forward(self, ids):
        x = self.embedding(ids)
        scores = x @ x.transpose(-2, -1) / x.shape[-1] ** 0.5
        return scores.softmax(-1) @ x


torch.manual_seed(0)
text = ["the", "cat", "saw", "the", "dog", "and", "the", "dog", "saw", "the", "cat"]
words = sorted(set(text))
ids = torch.tensor([[words.index(word) for word in text]])
model = HandWritten(len(words), 16)

with warnings.catch_warnings(), record_attention(model) as nothing:
    warnings.simplefilter("ignore")  # it says: give softmax=True
    model(ids)
with record_attention(model, softmax=True) as maps:
    model(ids)
print(f"{len(nothing)} maps without softmax=True, {len(maps)} with it")
one = maps[0].with_tokens([text], [text])
print(one.name, f"({one.kind})", tuple(one.weights.shape))
one.plot().savefig(sys.argv[1] if sys.argv[1:] else "hand_written.png", dpi=80)
