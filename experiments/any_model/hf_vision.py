"""A vision transformer of Hugging Face, trained for a moment to name the colour of a patch."""

import sys

import torch
from matplotlib.figure import Figure
from transformers import ViTConfig, ViTForImageClassification

from mha_lab import record_attention

torch.manual_seed(0)
size = {"image_size": 32, "patch_size": 4, "hidden_size": 32, "num_hidden_layers": 1}
size |= {"num_attention_heads": 2, "intermediate_size": 64, "num_labels": 3}
model = ViTForImageClassification(ViTConfig(**size, initializer_range=0.1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)


def pictures(colours):
    """Grey noise, with one of the 8 × 8 patches red, green or blue."""
    patch = torch.eye(64)[torch.randint(64, colours.shape)].view(-1, 1, 8, 8)
    patch = torch.nn.functional.interpolate(patch, scale_factor=4) > 0
    return torch.where(patch, torch.eye(3)[colours, :, None, None], 1 - torch.rand(patch.shape) / 2)


for _ in range(200):
    model.zero_grad()
    model(pictures(colours := torch.randint(3, (32,))), labels=colours).loss.backward()
    optimizer.step()

with record_attention(model) as maps:
    answers = model(images := pictures(torch.arange(3))).logits.argmax(-1)
print("colours named:", answers.tolist(), "-", maps[0].name, tuple(maps[0].weights.shape))
patches = maps[0].weights[:, :, 0, 1:].unflatten(-1, (8, 8))  # where the class token looks
look = {"extent": (0, 8, 8, 0), "clim": (0, 1), "cmap": "magma_r"}
for i, ax in enumerate(Figure((6, 6.4), layout="constrained").subplots(3, 3).T.ravel()):
    ax.imshow(images[i // 3].permute(1, 2, 0), **look)
    ax.imshow(patches[i // 3, i % 3 - 1], **look, alpha=0.7 * (i % 3 > 0))  # first the image alone
    ax.set(title=["image", "head 0", "head 1"][i % 3], xticks=[], yticks=[])
ax.figure.savefig(sys.argv[1] if sys.argv[1:] else "hf_vision.png", dpi=80)
