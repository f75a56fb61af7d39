"""What is recorded of each mechanism and part of the config folders is what it weighs by."""

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from mha_lab import config, record_attention
from mha_lab.build import build

N, L, E, H = 2, 7, 12, 6

CHOICES = [
    f"{group}={option}"
    for group in config.groups()
    if group == "attention" or group.startswith("attention/")
    for option in config.options(group)
]


LOOK_BACK_ONLY = ("attention=delta", "attention=retention")


@pytest.mark.parametrize("choice", CHOICES)
def test_recorded_are_the_weights_that_it_returns(choice: str, tmp_path: Path):
    torch.manual_seed(0)
    module = build(config.compose([choice], run_dir=tmp_path), "attention")(E, H).double().eval()
    x = torch.randn(N, L, E).double()
    for is_causal in (True,) if choice in LOOK_BACK_ONLY else (True, False):
        masks = {"is_causal": True} if is_causal else {}
        if is_causal and choice == "attention=builtin":  # torch's own wants the mask too
            masks["attn_mask"] = torch.ones(L, L, dtype=torch.bool).triu(1)
        output, weights = module(x, x, x, average_attn_weights=False, **masks)
        with record_attention(torch.nn.ModuleDict({"it": module}), values=True) as maps:
            watched, _ = module(x, x, x, need_weights=False, **masks)
        assert_close(watched, output)
        [one] = maps
        assert (one.name, one.shape) == ("it", (N, H, L, L))
        assert_close(one.weights, weights)
        assert one.value_weighted().weights.isfinite().all()
        if is_causal:
            assert one.kind == "masked"
            assert not one.weights.triu(1).any()
