"""A BERT of Hugging Face, trained for a moment to fill gaps in text that stands there twice."""

import sys

import torch
from transformers import BertConfig, BertForMaskedLM

from mha_lab import record_attention
from mha_lab.maps.plot import plot_maps

torch.manual_seed(0)
MASK, SEP = 26, 27
config = BertConfig(
    vocab_size=28, hidden_size=48, num_hidden_layers=1, num_attention_heads=3,
    intermediate_size=96, max_position_embeddings=13, initializer_range=0.1,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)  # fmt: skip
model = BertForMaskedLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

for _ in range(200):
    once = torch.randint(26, (64, 6))
    whole = torch.cat([once, torch.full((64, 1), SEP), once], dim=1)
    is_gap = (torch.rand(whole.shape) < 0.2) & (whole != SEP)
    loss = model(whole.masked_fill(is_gap, MASK), labels=whole.masked_fill(~is_gap, -100)).loss
    model.zero_grad()
    loss.backward()
    optimizer.step()

text = [*"matrix", "[SEP]", *"m", "[MASK]", *"tr", "[MASK]", *"x"]
special = {"[MASK]": MASK, "[SEP]": SEP}
ids = torch.tensor([[special.get(token, ord(token[0]) - ord("a")) for token in text]])
with record_attention(model.eval()) as maps:
    filled = model(ids).logits.argmax(-1)[0, [8, 11]]
print("gaps filled with:", *(chr(ord("a") + i) for i in filled))
print(maps[0].name, f"({maps[0].kind})", tuple(maps[0].weights.shape))
figure = plot_maps([maps[0].with_tokens([text], [text])], title="matrix m_tr_x → a i")
figure.savefig(sys.argv[1] if sys.argv[1:] else "hf_encoder.png", dpi=80)
