"""The fused kernel for whatever is a softmax over (scores + bias) under a mask, whatever its parts.

Queries carry the factors of their rows. A mixing that only adds up maps of one head is applied to
what the kernel makes of each map. One more key without a value (off by one, a sink) needs no key:
with the kernel's own sums Z of exponentials, the outputs are those of the kernel times
Z / (Z + exp(extra)); and the kernel's backward pass, told Z + exp(extra) instead of Z, gives the
gradients of that, since it makes its weights from Z.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from mha_lab.attention.allowed import per_map, take_apart, with_bias
from mha_lab.attention.bias import Bias, ToldBias, settled
from mha_lab.attention.functional import Mask
from mha_lab.attention.grouped import serve_groups
from mha_lab.attention.multihead.blocks import is_plain
from mha_lab.attention.multihead.padding import attend_without_padding, is_worth_cutting
from mha_lab.attention.parts import SoftmaxOver, ask

_FEW = 2**11
"""Maps of so few weights are subtracted sooner than the kernel has run for each."""

_KERNEL = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_KERNEL_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


def attend_fused(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Bias | None,
    mask: Mask | None,
    is_causal: bool,
    steps: Any,
    dropout_p: float,
) -> Tensor | None:
    """The heads' outputs (N, H, L, D), or None where the parts are no softmax.

    Args:
        q: (N, M·H, L, D/M).
        k: (N, M·kv_heads, S, D/M).
        v: (N, kv_heads, S, D).
        bias: Added to the scores, or None.
        mask: Inside mask, or None.
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
        steps: See :class:`mha_lab.attention.pipeline.Steps`.
        dropout_p: Probability of dropping a weight.
    """
    H, M = steps.num_heads, q.shape[1] // steps.num_heads
    as_softmax = ask(steps.weighting, "as_softmax", None)
    if (
        as_softmax is None
        or steps.softcap is not None
        or not ask(steps.mixing, "is_within_heads", False)
        or (M > 1 and dropout_p > 0)  # the maps would be dropped apart
        or (M > 1 and q.is_cpu and q.shape[2] * k.shape[2] <= _FEW)
        or _would_be_written_out(q, bias, dropout_p)
    ):
        return None

    bias, mask, is_causal = settled(bias, mask, is_causal)

    def allowed() -> Tensor:
        return take_apart(mask, is_causal, q.shape[2], k.shape[2], q.device).opened

    over: SoftmaxOver = as_softmax(allowed)
    if over.extra_score is not None and not _may_use_sums(q, k, mask, bias, dropout_p):
        return None
    q = q if over.row_scale is None else q * per_map(over.row_scale, H, M).to(q.dtype)
    mask, is_causal = with_bias(bias, mask, is_causal, q, k.shape[2], row_scale=over.row_scale)
    if mask is not None and mask.ndim == 3:
        mask = mask[None]  # the kernel takes two axes or four; of three, torch keeps all weights
    k, v = (serve_groups(x, steps.kv_heads, H) for x in (k, v))
    scale = steps.scale
    if M > 1:  # kernels want keys and values of one width
        width = v.shape[-1]
        q, k = (F.pad(x, (0, width - x.shape[-1])) for x in (q, k))
        v = v.repeat_interleave(M, 1)
        mask = None if mask is None else per_map(mask, H, M)
    if over.extra_score is not None:
        extra = over.extra_score.to(torch.promote_types(q.dtype, torch.float32))
        heads = _Beside.apply(q, k, v, extra.repeat_interleave(M), mask, is_causal, scale)  # type: ignore[no-untyped-call]
    elif mask is not None and dropout_p == 0 and is_worth_cutting(q, k, mask):
        default = q.shape[-1] ** -0.5
        heads = attend_without_padding(q if scale == default else q * (scale / default), k, v, mask)
    else:
        heads = F.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal, scale=scale)
    mixed: Tensor = steps.mixing(heads)
    return mixed


def _would_be_written_out(q: Tensor, bias: Bias | None, dropout_p: float) -> bool:
    """Whether torch has no kernel, and steps of its own that take longer than those of weigh."""
    if isinstance(bias, ToldBias):
        learns = bias.learns  # without making it, which weigh would do again
    else:
        learns = bias is not None and bias.requires_grad and torch.is_grad_enabled()
    return learns and q.is_cpu and dropout_p == 0 and not torch.compiler.is_compiling()


def _may_use_sums(
    q: Tensor, k: Tensor, mask: Mask | None, bias: Tensor | None, dropout_p: float
) -> bool:
    """Whether the kernel that tells its sums can be called: on a CPU, nobody looking inside."""
    return (
        q.is_cpu
        and dropout_p == 0
        and (bias is None or not bias.requires_grad)
        and not torch.is_autocast_enabled("cpu")
        and is_plain(q, k, mask)
        and q.numel() > 0
        and k.numel() > 0
    )


class _Beside(Function):
    """The kernel's outputs for a softmax with one more key a head, whose value is 0."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        extra: Tensor,
        mask: Mask | None,
        is_causal: bool,
        scale: float,
    ) -> Tensor:
        mask = None if mask is None else mask[(None,) * (4 - mask.ndim)]
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -torch.inf)
        output: Tensor
        output, sums = _KERNEL(q, k, v, 0.0, is_causal, attn_mask=mask, scale=scale)
        total = torch.logaddexp(sums, extra[:, None])
        output = output * (sums - total).exp().unsqueeze(-1).to(output.dtype)
        ctx.is_causal, ctx.scale = is_causal, scale
        ctx.save_for_backward(q, k, v, extra, mask, output, total)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, extra, mask, output, total = ctx.saved_tensors
        grads = _KERNEL_BACKWARD(
            grad, q, k, v, output, total, 0.0, ctx.is_causal, attn_mask=mask, scale=ctx.scale
        )
        taken = (grad * output).sum(-1, dtype=total.dtype) * (extra[:, None] - total).exp()
        return *grads, -taken.sum((0, 2)), None, None, None
