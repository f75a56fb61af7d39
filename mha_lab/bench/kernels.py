"""The least that attention can take with torch's kernels: its matrix products and its fused kernel.

Everything else that a module does (biases, layouts, masks, the joining of gradients) comes on top.
So this is how far below torch's module any module that calls these kernels can come.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from mha_lab.bench.shapes import Shape


def kernels_step(shape: "Shape", mode: str, device: "torch.device") -> Callable[[], None]:
    """The kernels of one self-attention, each called once on tensors that lie as it likes best.

    Args:
        shape: N, L, E, H.
        mode: "train" (forward and backward) or "eval" (forward alone).
        device: Where.

    Returns:
        What to time.
    """
    import torch
    import torch.nn.functional as F

    N, L, E, H = shape

    def random(*sizes: int) -> torch.Tensor:
        return torch.randn(sizes, device=device)

    x, w_in, w_out = random(N * L, E), random(3 * E, E), random(E, E)
    grad_qkv, grad_out = random(N * L, 3 * E), random(N * L, E)
    q, k, v = (random(N, H, L, E // H).requires_grad_(mode == "train") for _ in range(3))
    grad_heads = random(N, H, L, E // H)

    def forward() -> torch.Tensor:
        x @ w_in.T
        x @ w_out.T  # the output's projection; any tensor of its size serves
        return F.scaled_dot_product_attention(q, k, v)

    def forward_and_backward() -> None:
        torch.autograd.grad(forward(), (q, k, v), grad_heads)
        for grad, weight in ((grad_qkv, w_in), (grad_out, w_out)):
            grad @ weight
            grad.T @ x

    def forward_alone() -> None:
        with torch.no_grad():
            forward()

    return forward_and_backward if mode == "train" else forward_alone
