"""Every encoding compiles into one graph, on its own, wherever it acts."""

import pytest
import torch
from torch.testing import assert_close

from mha_lab import config
from mha_lab.build import build
from mha_lab.testing.position_cases import Heads, L, acts_inside, embeddings, make, scores


@pytest.mark.slow
@pytest.mark.parametrize("position", config.options("position"))
def test_compiles_and_exports(position: str) -> None:
    factory = build(config.compose([f"position={position}"], run_dir="RUN"), "position")
    module, places, heads = make(factory), torch.arange(L), Heads()
    if acts_inside(module):
        compiled = torch.compile(lambda p: scores(module, heads, p, p), fullgraph=True)
        assert_close(compiled(places), scores(module, heads, places, places), atol=1e-5, rtol=1e-5)
        return
    x = embeddings()
    assert_close(torch.compile(module, fullgraph=True)(x), module(x))
    assert_close(torch.export.export(module, (x,)).module()(x), module(x))
