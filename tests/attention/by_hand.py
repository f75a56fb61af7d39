"""Multi-head attention computed row by row, each over the keys that it may see and no others."""

import math

import torch
from torch import Tensor, nn


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """What a batch-first module of torch's parameters must give.

    Args:
        module: Ours or torch's, of any constructor arguments; dropout is left out.
        query: (N, L, E).
        key: (N, S, kdim).
        value: (N, S, vdim).
        bias: What is added to the scores, broadcastable to (N, H, L, S); -inf hides a key.

    Returns:
        The output (N, L, E) and the weights (N, H, L, S + added keys).
    """
    (N, L, E), S, H = query.shape, key.shape[1], module.num_heads
    D = E // H
    if module.in_proj_weight is not None:
        weights = module.in_proj_weight.split(E)
    else:
        weights = module.q_proj_weight, module.k_proj_weight, module.v_proj_weight
    zeros = query.new_zeros(E)
    biases = (zeros,) * 3 if module.in_proj_bias is None else module.in_proj_bias.split(E)
    q, k, v = (x @ w.T + b for x, w, b in zip((query, key, value), weights, biases, strict=True))
    bias = query.new_zeros(()) if bias is None else bias
    bias = bias.expand(N, H, L, S)
    if module.bias_k is not None:
        k = torch.cat([k, module.bias_k.expand(N, 1, E)], 1)
        v = torch.cat([v, module.bias_v.expand(N, 1, E)], 1)
    if module.add_zero_attn:
        k, v = (torch.cat([x, zeros.expand(N, 1, E)], 1) for x in (k, v))
    bias = torch.cat([bias, bias.new_zeros(N, H, L, k.shape[1] - S)], -1)
    outputs, maps = [], []
    for n in range(N):
        heads = []
        for h in range(H):
            part = slice(h * D, (h + 1) * D)
            rows = [
                _row(q[n, i, part], k[n, :, part], v[n, :, part], bias[n, h, i]) for i in range(L)
            ]
            heads.append(torch.stack([output for output, _ in rows]))
            maps.append(torch.stack([row for _, row in rows]))
        outputs.append(torch.cat(heads, -1))
    output = torch.stack(outputs) @ module.out_proj.weight.T
    if module.out_proj.bias is not None:
        output = output + module.out_proj.bias
    return output, torch.stack(maps).view(N, H, L, -1)


def _row(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    seen = [j for j in range(len(k)) if bias[j] != -math.inf]
    row = q.new_zeros(len(k))
    if not seen:
        return (q * 0), row
    scores = torch.stack([(q * k[j]).sum() / math.sqrt(len(q)) + bias[j] for j in seen])
    shares = (scores - scores.max()).exp()
    shares = shares / shares.sum()
    row = row.index_put((torch.tensor(seen),), shares)
    return shares @ v[seen], row


def blocking(blocked: Tensor) -> Tensor:
    """What a bool mask (True = blocked) adds to the scores, in float64."""
    return torch.zeros(blocked.shape, dtype=torch.float64).masked_fill(blocked, -math.inf)
