"""What tests of mechanisms with a state share: their inputs, references and how they agree."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn

TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-10}
N, H, D = 2, 3, 5


def heads(L: int, S: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """q (N, H, L, D), k and v (N, H, S, D)."""
    generator = torch.Generator().manual_seed(0)
    return tuple(  # type: ignore[return-value]
        torch.randn(N, H, length, D, generator=generator, dtype=torch.float64).to(dtype)
        for length in (L, S, S)
    )


def keys_of(S: int) -> Tensor:
    """(N, 1, S): the second sample ends in three keys that do not count."""
    keys = torch.ones(N, 1, S, dtype=torch.bool)
    keys[1, :, S - 3 :] = False
    return keys


def agree(
    ours: Callable[..., Tensor], theirs: Callable[..., Tensor], tensors: tuple[Tensor, ...]
) -> None:
    """Outputs and gradients agree, relative to their largest number."""
    results = []
    for function in (ours, theirs):
        inputs = [x.detach().clone().requires_grad_() for x in tensors]
        output = function(*inputs)
        generator = torch.Generator().manual_seed(1)
        wanted = torch.randn(output.shape, generator=generator, dtype=torch.float64)
        grads = torch.autograd.grad(output, inputs, wanted.to(output.dtype))
        results.append([output.detach(), *grads])
    for name, mine, other in zip(["output", *"qkvbcd"], *results, strict=False):
        error = (mine - other).abs().max() / other.abs().max().clamp(min=1.0)
        assert error <= TOLERANCES[mine.dtype], f"{name}: {error:.2g}"


class Turning(nn.Module):
    """Rotary positions over neighbouring pairs, as complex numbers: DeepSeek's layout."""

    def rotate(
        self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        def turn(x: Tensor, positions: Tensor) -> Tensor:
            pairs = x.unflatten(-1, (-1, 2))
            even = torch.arange(0, x.shape[-1], 2, dtype=torch.float64)
            angles = positions[:, None].double() * 10000.0 ** (-even / x.shape[-1])
            turned = torch.view_as_complex(pairs.double().contiguous()) * torch.polar(
                torch.ones_like(angles), angles
            )
            # All first numbers, then all second ones: DeepSeek's order after turning.
            return torch.view_as_real(turned).transpose(-1, -2).flatten(-2).to(x.dtype)

        return turn(q, q_positions), turn(k, k_positions)


def fla(operation: str) -> ModuleType:
    """flash-linear-attention's plain functions, by path: its package needs triton."""
    found = importlib.util.find_spec("fla")
    assert found is not None
    assert found.submodule_search_locations
    path = Path(found.submodule_search_locations[0]) / "ops" / operation / "naive.py"
    spec = importlib.util.spec_from_file_location(f"naive_{operation}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
