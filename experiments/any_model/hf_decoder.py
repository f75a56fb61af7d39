"""A Llama of Hugging Face with grouped queries, trained for a moment on text that repeats."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from mha_lab import record_attention
from mha_lab.maps.plot import plot_maps

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=26, hidden_size=64, intermediate_size=64, num_hidden_layers=1,
    num_attention_heads=4, num_key_value_heads=2,
)  # fmt: skip
model = LlamaForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

for _ in range(150):
    once = torch.randint(26, (64, 7))
    ids = torch.cat([once, once], dim=1)
    loss = model(ids, labels=ids.index_fill(1, torch.arange(7), -100)).loss
    model.zero_grad()
    loss.backward()
    optimizer.step()

text = [*"pytorchpytorch"]
ids = torch.tensor([[ord(letter) - ord("a") for letter in text]])
with record_attention(model) as maps:
    after = model(ids).logits.argmax(-1)[0, 6:-1]
one = maps[0].with_tokens([text], [text])
print("the second time it writes:", "".join(chr(ord("a") + i) for i in after))
print(one.name, f"({one.kind})", tuple(one.weights.shape))
print("induction score of each head:", *(f"{x:.1f}" for x in one.scores()["induction"]))
figure = plot_maps([one], title="pytorch pytorch, the second time → pytorch")
figure.savefig(sys.argv[1] if sys.argv[1:] else "hf_decoder.png", dpi=80)
