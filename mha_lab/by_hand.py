"""What passes written by hand share: when they will do, heads that lie together, diagonals."""

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import get_proxy_mode


def is_plain(*tensors: Tensor | None) -> bool:
    """Whether nothing but the usual backward pass wants to look inside.

    Args:
        tensors: Of the call, the first not None.
    """
    return not (
        type(tensors[0]) is not Tensor
        or torch.compiler.is_compiling()
        or torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
        or torch._C._are_functorch_transforms_active()
        or get_proxy_mode() is not None
        or any(_has_tangent(x) for x in tensors if x is not None)
    )


def is_transformed(x: Tensor) -> bool:
    """Whether ``torch.func`` or a tangent wants to look inside, where passes by hand are none."""
    return not torch.compiler.is_compiling() and (
        torch._C._are_functorch_transforms_active() or _has_tangent(x)
    )


def is_batched(grad: Tensor) -> bool:
    """Whether these are several gradients at once, of ``torch.vmap`` or ``is_grads_batched``."""
    functorch = torch._C._functorch
    return functorch.is_batchedtensor(grad) or functorch.is_legacy_batchedtensor(grad)


def side_by_side(q: Tensor, k: Tensor) -> Tensor | None:
    """One view (N, H + Hk, L, D) of both, if k's heads follow q's in memory; else None.

    So one projection leaves them, and what is done to both is done in half as many passes.
    """
    lie_so = (
        q.stride() == k.stride()
        and (len(q), *q.shape[2:]) == (len(k), *k.shape[2:])
        and k.data_ptr() == q.data_ptr() + q.shape[1] * q.stride(1) * q.element_size()
        and k.untyped_storage().data_ptr() == q.untyped_storage().data_ptr()
    )
    if not lie_so:
        return None
    shape = (len(q), q.shape[1] + k.shape[1], *q.shape[2:])
    return q.as_strided(shape, q.stride(), q.storage_offset())


def on_diagonals(numbers: Tensor, rows: int) -> Tensor:
    """From (H, rows + K - 1) numbers to (H, rows, K), a number each diagonal, the lowest first."""
    H, count = numbers.shape
    # Row after row they are repeated, and read in rows one number shorter.
    repeated = numbers[:, None].expand(H, rows, count).contiguous()
    shape = H, rows, count - rows + 1
    start = repeated.storage_offset() + rows - 1  # one row of one head is not copied
    return repeated.as_strided(shape, (rows * count, count - 1, 1), start)


def sums_of_diagonals(x: Tensor, turned: Tensor | None) -> tuple[Tensor, Tensor]:
    """The sums (H, rows + K - 1) of the diagonals of (H, rows, K), the lowest first.

    Args:
        x: (H, rows, K).
        turned: Memory of a call before, which is used again where the shape is the same.

    Returns:
        The sums, and the memory.
    """
    H, rows, K = x.shape
    count = rows + K - 1
    if turned is None or turned.shape != (H, rows, count):
        turned = x.new_zeros(H, rows, count)
    # In rows one number longer than those of x, each diagonal is a column.
    turned.as_strided(x.shape, (rows * count, count - 1, 1), rows - 1).copy_(x)
    return turned.sum(1), turned


def _has_tangent(x: Tensor) -> bool:
    return forward_ad.unpack_dual(x).tangent is not None  # type: ignore[no-untyped-call]
