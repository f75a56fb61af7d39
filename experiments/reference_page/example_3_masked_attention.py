"""Example 3: masked attention, as in a decoder: no position attends to a later one."""

import torch

from mha_lab import MultiheadAttention


def main() -> None:
    """Attend under a causal mask, and show that it holds."""
    torch.manual_seed(0)
    attention = MultiheadAttention(embed_dim=128, num_heads=4)

    x = torch.randn(1, 20, 128)
    mask = torch.triu(torch.ones(20, 20), diagonal=1).bool()  # True: may not attend
    output, weights = attention(x, x, x, attn_mask=mask)

    print("output ", tuple(output.shape))
    print("weights", tuple(weights.shape))
    print("largest weight on a later position:", weights[..., mask].max().item())

    changed = x.clone()
    changed[:, 10:] = torch.randn(1, 10, 128)  # other tokens from position 10 on
    other, _ = attention(changed, changed, changed, attn_mask=mask)
    same = (other - output).abs().amax(-1)[0] < 1e-6
    print("positions whose output is the same: 0 to", int(same.nonzero().max()))

    causal, _ = attention(x, x, x, is_causal=True)  # the same, without building the mask
    print("is_causal=True is the same mask:", torch.allclose(causal, output, atol=1e-6))


if __name__ == "__main__":
    main()
