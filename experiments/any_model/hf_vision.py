"""A vision transformer of Hugging Face, trained for a moment to name the colour of a patch."""

import sys

import torch
from matplotlib.figure import Figure
from transformers import ViTConfig, ViTForImageClassification

from mha_lab import record_attention
from mha_lab.maps.colours import colours_of, show_weights

torch.manual_seed(0)
size = {"image_size": 32, "patch_size": 4, "hidden_size": 32, "num_hidden_layers": 1}
size |= {"num_attention_heads": 2, "intermediate_size": 64, "num_labels": 3}
model = ViTForImageClassification(ViTConfig(**size, initializer_range=0.1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

colours = torch.cat([torch.randint(3, (6400,)), torch.arange(3)])  # the last three to look at
patch = torch.eye(64)[torch.randint(64, colours.shape)].view(-1, 1, 8, 8)
patch = torch.nn.functional.interpolate(patch, scale_factor=4) > 0  # the rest is grey noise
images = torch.where(patch, torch.eye(3)[colours, :, None, None], 1 - torch.rand(patch.shape) / 2)

for batch, labels in zip(images[:-3].split(32), colours[:-3].split(32), strict=True):
    model.zero_grad()
    model(batch, labels=labels).loss.backward()
    optimizer.step()
with record_attention(model) as maps:
    answers = model(images[-3:]).logits.argmax(-1)
print("colours named:", answers.tolist(), "-", maps[0].name, tuple(maps[0].weights.shape))
looks = maps[0].weights[:, :, 0, 1:].unflatten(-1, (8, 8)).numpy()  # where the class token looks
axes = Figure((6, 6), layout="constrained").subplots(3, 3, subplot_kw={"xticks": [], "yticks": []})
for n, (top, *below) in enumerate(axes.T):
    top.imshow(images[n - 3].permute(1, 2, 0))
    top.set_title("→ " + ["red", "green", "blue"][answers[n]])
    for head, ax in enumerate(below):
        shown = show_weights(ax, looks[n, head], colours_of(looks))
        ax.set_title(f"head {head}")
top.figure.colorbar(shown, ax=axes[1:], label="weight of a patch")
top.figure.savefig(sys.argv[1] if sys.argv[1:] else "hf_vision.png", dpi=80)
