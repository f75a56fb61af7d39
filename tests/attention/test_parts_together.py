"""Any weighting with any mixing: the ways of long calls give what the plain pipeline gives."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from mha_lab import config
from mha_lab.attention import pipeline
from mha_lab.attention.blockwise import attend as blockwise
from mha_lab.attention.blockwise import block
from mha_lab.attention.patterns.window import Window
from mha_lab.build import build
from mha_lab.positions.alibi import AlibiPositions
from mha_lab.positions.rotary import RotaryPositions
from mha_lab.positions.shaw import ShawPositions

N, H, L, E = 2, 6, 47, 24
OTHERS: dict[str, dict[str, Any]] = {
    "few keys and values": {"kv_heads": 2, "position": AlibiPositions},
    "capped": {"kv_heads": 1, "softcap": 1.5, "position": RotaryPositions},
    "windows": {
        "pattern": partial(Window, size=[1, 3, 7, None, 2, 60]),
        "qk_norm": "rms",
        "position": ShawPositions,
        "gate": True,
    },
}
"""What is chosen beside the two."""


@pytest.fixture(params=["blocks are small", "as many as ever"], autouse=True)
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "blocks are small":
        monkeypatch.setattr(blockwise, "_WORTH", 1)
        monkeypatch.setattr(pipeline, "_MANY", 1)
        monkeypatch.setattr(block, "_FEWEST_ROWS", 5)
        monkeypatch.setattr(block, "BLOCK_ELEMENTS", 700)


def outcome(module: nn.Module, x: Tensor, **call: Any) -> list[Tensor]:
    given = x.clone().requires_grad_()
    output = module(given, given, given, **call)[0]
    wanted = [given, *module.parameters()]
    return [output, *torch.autograd.grad(output.square().sum(), wanted, materialize_grads=True)]


@pytest.mark.parametrize("mixing", config.options("attention/mixing"))
@pytest.mark.parametrize("weighting", config.options("attention/weighting"))
def test_weights_wanted_or_not(weighting: str, mixing: str) -> None:
    words = [f"attention/weighting={weighting}", f"attention/mixing={mixing}"]
    make = build(config.compose(["attention=composed", *words], run_dir="RUN"), "attention")
    torch.manual_seed(0)
    x = torch.randn(N, L, E, dtype=torch.float64)
    padding = torch.arange(L) >= torch.tensor([[L], [9]])
    for options, hidden in zip(OTHERS.values(), (None, padding, padding), strict=True):
        module = make(E, H, **{**options, "position": options["position"](E, num_heads=H)}).double()
        for parameter in module.parameters():
            parameter.data += 0.2 * torch.randn_like(parameter)
        call = {"is_causal": True, "key_padding_mask": hidden}
        expected = outcome(module, x, need_weights=True, **call)
        found = outcome(module, x, need_weights=False, **call)
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other, rtol=0, atol=1e-10 * max(1.0, other.abs().max().item()))
