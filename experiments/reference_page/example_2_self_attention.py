"""Example 2: self-attention, where query, key and value are the same sequence."""

import torch

from mha_lab import MultiheadAttention


def main() -> None:
    """Let a sequence of 50 positions attend to itself."""
    torch.manual_seed(0)
    attention = MultiheadAttention(embed_dim=256, num_heads=4)

    x = torch.randn(2, 50, 256)
    output, weights = attention(x, x, x)

    print("x      ", tuple(x.shape))
    print("output ", tuple(output.shape))
    print("weights", tuple(weights.shape))
    sums = weights.sum(-1)
    print("each position shares out a weight of 1:", torch.allclose(sums, torch.ones_like(sums)))


if __name__ == "__main__":
    main()
