"""The blocks against torch's own layers, with copied weights."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from mha_lab import MultiheadAttention
from mha_lab.models.blocks import DecoderBlock, EncoderBlock
from mha_lab.models.sequences import causal_mask

N, T, S, E, H, F = 2, 5, 7, 33, 3, 43
BUILTIN = partial(nn.MultiheadAttention, batch_first=True)
ATTENTIONS = pytest.mark.parametrize(
    "attention", [BUILTIN, MultiheadAttention], ids=["builtin", "custom"]
)
NORMS = pytest.mark.parametrize("norm", ["pre", "post"])
ACTIVATIONS = pytest.mark.parametrize("activation", ["relu", "gelu"])


def copy_weights(layer: nn.Module, block: nn.Module) -> None:
    """Give ``block`` the weights of torch's ``layer``, both freshly perturbed."""
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3)
    norms = ["self_residual", "cross_residual", "feedforward_residual"]
    if isinstance(block, EncoderBlock):
        norms.remove("cross_residual")
    names = {
        "multihead_attn": "cross_attn",
        "linear1": "feedforward.linear1",
        "linear2": "feedforward.linear2",
        **{f"norm{i}": f"{name}.norm" for i, name in enumerate(norms, 1)},
    }
    state = {}
    for key, value in layer.state_dict().items():
        first, rest = key.split(".", 1)
        state[f"{names.get(first, first)}.{rest}"] = value
    block.load_state_dict(state)


def gradients(output: torch.Tensor, module: nn.Module, *inputs: torch.Tensor) -> list[torch.Tensor]:
    weight = torch.linspace(-1, 1, output.numel()).view_as(output)
    wanted = [*inputs, *(p for _, p in sorted(module.named_parameters(), key=lambda p: p[1].shape))]
    return list(torch.autograd.grad((output * weight).sum(), wanted))


@ATTENTIONS
@NORMS
@ACTIVATIONS
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_encoder_block_is_torchs_layer(attention, norm, activation, mode):
    layer = nn.TransformerEncoderLayer(
        E, H, F, dropout=0.0, activation=activation, batch_first=True, norm_first=norm == "pre"
    )
    block = EncoderBlock(
        E, H, attention=attention, feedforward_dim=F, norm=norm, activation=activation
    )
    copy_weights(layer, block)
    layer.train(mode == "train"), block.train(mode == "train")
    x = torch.randn(N, S, E)
    padding = torch.arange(S) >= torch.tensor([[S], [3]])
    with torch.set_grad_enabled(mode == "train"):
        expected = layer(x, src_key_padding_mask=padding)
        actual = block(x, key_padding_mask=padding)
        assert_close(actual[~padding], expected[~padding], rtol=1e-6, atol=1e-6 * 10)
        mask = causal_mask(S, x.device)
        expected = layer(x, src_mask=mask, is_causal=True)
        assert_close(block(x, attn_mask=mask, is_causal=True), expected, rtol=1e-6, atol=1e-5)


@ATTENTIONS
@NORMS
def test_decoder_block_is_torchs_layer(attention, norm):
    layer = nn.TransformerDecoderLayer(
        E, H, F, dropout=0.0, batch_first=True, norm_first=norm == "pre"
    )
    block = DecoderBlock(E, H, attention=attention, feedforward_dim=F, norm=norm)
    copy_weights(layer, block)
    x, memory = torch.randn(N, T, E), torch.randn(N, S, E)
    padding = torch.arange(S) >= torch.tensor([[S], [3]])
    mask = causal_mask(T, x.device)
    expected = layer(x, memory, tgt_mask=mask, tgt_is_causal=True, memory_key_padding_mask=padding)
    actual = block(x, memory, attn_mask=mask, is_causal=True, memory_key_padding_mask=padding)
    assert_close(actual, expected, rtol=1e-6, atol=1e-5)


class Choosy(nn.MultiheadAttention):
    """Says that it has no meaning where ``unfit`` says so."""

    def __init__(self, *sizes, dropout, unfit):
        super().__init__(*sizes, dropout=dropout, batch_first=True)
        self.unfit = unfit

    def refuse(self, *, is_causal, is_cross):
        if (is_causal, is_cross) == self.unfit:
            raise ValueError(f"no meaning with {is_causal=} and {is_cross=}; choose another")


@pytest.mark.parametrize(
    ("block", "unfit"),
    [
        (EncoderBlock, (False, False)),
        (partial(EncoderBlock, is_causal=True), (True, False)),
        (DecoderBlock, (True, False)),
        (DecoderBlock, (False, True)),
    ],
)
def test_attention_is_asked_where_it_stands(block, unfit):
    with pytest.raises(ValueError, match=r"no meaning with is_causal=.*; choose another"):
        block(E, H, attention=partial(Choosy, unfit=unfit))
    block(E, H, attention=partial(Choosy, unfit=(True, True)))
