"""Example 1: the shapes of query, output and attention weights."""

import torch

from mha_lab import MultiheadAttention


def main() -> None:
    """Attend from 100 positions to 100 positions, in a batch of 4."""
    torch.manual_seed(0)
    attention = MultiheadAttention(embed_dim=512, num_heads=8)

    query = torch.randn(4, 100, 512)  # (batch, seq, embed_dim): batch_first is the default
    key = torch.randn(4, 100, 512)
    value = torch.randn(4, 100, 512)
    output, weights = attention(query, key, value)

    print("query  ", tuple(query.shape))
    print("output ", tuple(output.shape))
    print("weights", tuple(weights.shape), "= (batch, heads, queries, keys)")


if __name__ == "__main__":
    main()
