"""torch's own nn.Transformer, trained for a moment to reverse: the anti-diagonal appears."""

import sys

import torch
from torch import nn

from mha_lab import record_attention
from mha_lab.maps.plot import plot_maps

torch.manual_seed(0)
transformer = nn.Transformer(32, 2, 1, 1, dim_feedforward=64, dropout=0.0, batch_first=True)
symbol, place, output = nn.Embedding(10, 32), nn.Embedding(7, 32), nn.Linear(32, 10)
model = nn.ModuleDict({"s": symbol, "p": place, "transformer": transformer, "o": output})
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
mask = nn.Transformer.generate_square_subsequent_mask(7)


def write(source, target):
    """Logits of the target; the decoder reads it one place later, after a start symbol 0."""
    x, y = symbol(source), symbol(nn.functional.pad(target[:, :-1], (1, 0)))
    return output(transformer(x + place.weight, y + place.weight, tgt_mask=mask))


for _ in range(250):
    source = torch.randint(1, 10, (64, 7))
    model.zero_grad()
    nn.functional.cross_entropy(write(source, source.flip(1)).mT, source.flip(1)).backward()
    optimizer.step()
source = torch.tensor([[7, 3, 9, 1, 4, 2, 8]])
with record_attention(model) as maps:
    print(source[0].tolist(), "->", write(source, source.flip(1)).argmax(-1)[0].tolist())
print(*(f"{one.name} ({one.kind})" for one in maps), sep="\n")
read, keys = [[*"7391428"]], [["start", *"824193"]]
rows = [[f"{key} → {wrote}" for key, wrote in zip(keys[0], "8241937", strict=True)]]
labels = zip([read, rows, rows], [read, keys, read], strict=True)
labelled = [one.with_tokens(*tokens) for one, tokens in zip(maps, labels, strict=True)]
figure = plot_maps(labelled, title="7 3 9 1 4 2 8 → 8 2 4 1 9 3 7")
figure.savefig(sys.argv[1] if sys.argv[1:] else "stock_transformer.png", dpi=70)
