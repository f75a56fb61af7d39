"""The inputs on which positional encodings are checked, and what an encoding tells of positions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mha_lab.positions.interface import make_encoding, place_of

Factory = Callable[..., nn.Module]

# All different, and D even: pairs of numbers turn.
N, L, H, D = 2, 5, 3, 14
E = H * D


def make(factory: Factory, embed_dim: int = E, *, is_causal: bool = True, seed: int = 0) -> Any:
    """An encoding in eval mode, whose weights follow from the seed and are nowhere zero."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = make_encoding(factory, embed_dim, num_heads=H, is_causal=is_causal).eval()
        for parameter in module.parameters():
            if not parameter.detach().any():  # what starts at 0 tells nothing yet
                nn.init.normal_(parameter)
    return module


def acts_inside(module: nn.Module) -> bool:
    """Whether an encoding acts inside attention, not on the embeddings."""
    return place_of(module) != "embeddings"


def random(*shape: int, seed: int = 0) -> Tensor:
    """Random numbers, the same at each call."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def embeddings() -> Tensor:
    """(N, L, E)."""
    return random(N, L, E)


class Heads:
    """Queries, keys and the attention's input, of one sequence.

    Attributes:
        q: (N, H, L, D).
        k: (N, H, L, D).
        x: (N, L, E).
    """

    def __init__(self, length: int = L, dtype: torch.dtype = torch.float32) -> None:
        self.q = random(N, H, length, D, seed=1).to(dtype)
        self.k = random(N, H, length, D, seed=2).to(dtype)
        self.x = random(N, length, E, seed=3).to(dtype)

    def at(self, rows: Tensor) -> "Heads":
        """The same, of other rows."""
        chosen = Heads(0)
        chosen.q, chosen.k, chosen.x = self.q[:, :, rows], self.k[:, :, rows], self.x[:, rows]
        return chosen


def scores(module: Any, heads: Heads, q_places: Tensor, k_places: Tensor) -> Tensor:
    """What the encoding makes of plain scores: (N, H, L, S), or fewer samples."""
    if hasattr(module, "rotate"):
        q, k = module.rotate(heads.q, heads.k, q_places, k_places)
        return q @ k.transpose(-2, -1)  # type: ignore[no-any-return]
    if hasattr(module, "score_bias"):
        bias: Tensor = module.score_bias(heads.q, heads.k, heads.x, q_places, k_places)
        return bias
    static: Tensor = module.bias(q_places, k_places)
    return static[None]


def below_diagonal(bias: Tensor) -> Tensor:
    """With 0 where the key stands after the query: there a causal mask blocks."""
    later = torch.ones(bias.shape[-2:], dtype=torch.bool).triu(1)
    return bias.masked_fill(later, 0.0)
