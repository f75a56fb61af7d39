"""The twin of ``torch.nn.MultiheadAttention``: the module and the steps that it takes."""

from mha_lab.attention.multihead.module import MultiheadAttention

__all__ = ["MultiheadAttention"]
