"""How heads, or the maps of each head, are mixed, and the way back.

A matrix (H, H) exchanges between heads. Factors (M - 1,) add to the first map of each head its
M - 1 further ones, which follow it.
"""

import torch
from torch import Tensor

from mha_lab.attention.functional import exchange


def maps_of(mixing: Tensor | None) -> int:
    """M: how many maps become one."""
    return 1 if mixing is None or mixing.ndim == 2 else len(mixing) + 1


def mix(mixing: Tensor | None, x: Tensor) -> Tensor:
    """What becomes of (n, M·h, rows, keys): (n, h, rows, keys)."""
    if mixing is None:
        return x
    if mixing.ndim == 2:
        return exchange(mixing, x)
    total, *further = _by_heads(x, mixing).unbind(2)
    for of_map, factor in zip(further, mixing, strict=True):
        total = torch.addcmul(total, of_map, factor)
    return total


def mix_back(mixing: Tensor | None, given: Tensor, grad: Tensor) -> tuple[Tensor, Tensor | None]:
    """The gradients of what was given and of the mixing.

    Args:
        mixing: See above.
        given: (n, M·h, rows, keys).
        grad: That of what it became, (n, h, rows, keys).
    """
    if mixing is None:
        return grad, None
    if mixing.ndim == 2:
        return exchange(mixing.t(), grad), torch.einsum("nhls,ngls->hg", grad, given)
    maps = _by_heads(given, mixing)
    of_maps = torch.empty_like(maps)
    of_maps[:, :, 0] = grad
    torch.mul(grad.unsqueeze(2), mixing[:, None, None], out=of_maps[:, :, 1:])
    return of_maps.flatten(1, 2), _dots(maps[:, :, 1:], grad)


def _by_heads(maps: Tensor, factors: Tensor) -> Tensor:
    """(n, h, M, rows, keys)."""
    return maps.reshape(len(maps), -1, maps_of(factors), *maps.shape[2:])


def _dots(maps: Tensor, grad: Tensor) -> Tensor:
    """The sums (M - 1,) of maps (n, h, M - 1, rows, keys) times grad (n, h, rows, keys)."""
    heads = zip(maps.flatten(0, 1), grad.flatten(0, 1), strict=True)
    return torch.stack([x.flatten(1) @ g.flatten() for x, g in heads]).sum(0)
