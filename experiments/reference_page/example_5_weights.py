"""Example 5: looking at the attention weights, as numbers and as a picture."""

from pathlib import Path

import numpy as np
import torch

from mha_lab import AttentionMap, MultiheadAttention

FIGURE = Path(__file__).parent / "attention_weights.png"


def main(figure: Path = FIGURE) -> None:
    """Print the weights of 2 heads over 5 positions, and draw them."""
    torch.manual_seed(0)
    attention = MultiheadAttention(embed_dim=64, num_heads=2)

    x = torch.randn(1, 5, 64)
    _, attn = attention(x, x, x)
    picture = AttentionMap(name="self-attention", weights=attn.detach())

    # The weights carry gradient (a loss on them trains), and NumPy takes no tensor that does:
    # without .detach(), array2string raises "Can't call numpy() on Tensor that requires grad".
    attn = attn.squeeze(0).detach()  # (heads, queries, keys)
    print("attn", tuple(attn.shape))
    print("first head, first three positions:")
    print(np.array2string(attn[0, :3, :3].numpy(), precision=2))
    print("what position 0 attends to:")
    print(np.array2string(attn[0, 0].numpy(), precision=2))

    picture.plot().savefig(figure, dpi=120)
    print("picture:", figure.name)


if __name__ == "__main__":
    main()
