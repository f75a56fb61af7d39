"""A T5 of Hugging Face, trained for a moment to write everything twice."""

import sys

import torch
import torch.nn.functional as F
from transformers import T5Config, T5ForConditionalGeneration

from mha_lab import record_attention
from mha_lab.maps.plot import plot_maps

torch.manual_seed(0)
config = T5Config(
    vocab_size=27, d_model=64, d_kv=16, d_ff=64, num_layers=1, num_heads=2,
    dropout_rate=0.0, decoder_start_token_id=0,
)  # fmt: skip
model = T5ForConditionalGeneration(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

for _ in range(250):
    words = torch.randint(1, 27, (64, 6))
    loss = model(F.pad(words, (0, 1)), labels=words.repeat_interleave(2, dim=1)).loss
    model.zero_grad()
    loss.backward()
    optimizer.step()

read, keys = [[*"planet", "end"]], [["start", *"ppllaanneet"]]
rows = [[f"{key} → {wrote}" for key, wrote in zip(keys[0], "ppllaanneett", strict=True)]]
word = torch.tensor([[ord(letter) - ord("a") + 1 for letter in "planet"]])
with record_attention(model) as maps:
    output = model(F.pad(word, (0, 1)), labels=word.repeat_interleave(2, dim=1))
twice = output.logits.argmax(-1)[0]
print("planet ->", "".join(chr(ord("a") + i - 1) for i in twice))
print(*(f"{one.name} ({one.kind})" for one in maps), sep="\n")
axes = [(read, read), (rows, keys), (rows, read)]
labelled = [one.with_tokens(*tokens) for one, tokens in zip(maps, axes, strict=True)]
figure = plot_maps(labelled, title="planet → ppllaanneett")
figure.savefig(sys.argv[1] if sys.argv[1:] else "hf_encoder_decoder.png", dpi=70)
