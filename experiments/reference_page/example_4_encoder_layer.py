"""Example 4: a full Transformer encoder layer, post-norm, written out; and the project's block."""

import torch
from torch import Tensor, nn

from mha_lab import MultiheadAttention
from mha_lab.models.blocks import EncoderBlock


class EncoderLayer(nn.Module):
    """Self-attention, residual, LayerNorm; feed-forward, residual, LayerNorm."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.attention = MultiheadAttention(d_model, num_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.ReLU(), nn.Linear(4 * d_model, d_model)
        )
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, L, d_model) to the same shape."""
        attended, _ = self.attention(x, x, x)
        x = self.norm1(x + attended)
        return self.norm2(x + self.feed_forward(x))


def as_block(layer: EncoderLayer, d_model: int, num_heads: int) -> EncoderBlock:
    """The project's own block with the layer's weights."""
    block = EncoderBlock(d_model, num_heads, attention=MultiheadAttention, norm="post")
    block.self_attn.load_state_dict(layer.attention.state_dict())
    block.self_residual.norm.load_state_dict(layer.norm1.state_dict())
    block.feedforward.linear1.load_state_dict(layer.feed_forward[0].state_dict())
    block.feedforward.linear2.load_state_dict(layer.feed_forward[2].state_dict())
    block.feedforward_residual.norm.load_state_dict(layer.norm2.state_dict())
    return block


def main() -> None:
    """Run the layer, and compare the block with it."""
    torch.manual_seed(0)
    layer = EncoderLayer(d_model=512, num_heads=8)

    x = torch.randn(4, 100, 512)
    output = layer(x)
    print("x     ", tuple(x.shape))
    print("output", tuple(output.shape))
    print("parameters", f"{sum(p.numel() for p in layer.parameters()):,}")

    difference = (as_block(layer, 512, 8)(x) - output).abs().max().item()
    print("EncoderBlock(norm='post') is the same layer, to 1e-6:", difference <= 1e-6)


if __name__ == "__main__":
    main()
