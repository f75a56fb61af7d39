"""Greedy decoding with a cache: the same logits and tokens as without, for all that takes one."""

import re
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch
from omegaconf import DictConfig
from torch import Tensor, nn
from torch.testing import assert_close

from mha_lab import config, record_attention
from mha_lab.attention.cache import Cache
from mha_lab.build import build
from mha_lab.models.decoder import Decoder
from mha_lab.models.encoder_decoder import EncoderDecoder
from mha_lab.tasks.vocabulary import Vocabulary

ATTENTIONS = tuple(config.options("attention"))
POSITIONS = tuple(config.options("position"))
MODELS = ("decoder", "encoder_decoder")
FEW = (
    "builtin", "custom", "composed", "grouped_query", "window", "talking_heads", "differential",
    "stick_breaking", "latent", "linear", "retention", "delta",
)  # fmt: skip
"""One of each kind; composing the configs of all takes longer than all else here."""

WITHOUT = {"builtin"}
"""Torch's module takes no cache."""

EOS, PAD = Vocabulary.EOS, Vocabulary.PAD
T = 11
SOURCE = torch.tensor(
    [[5, 6, 7, 8, 9, 10, EOS], [9, EOS, PAD, PAD, PAD, PAD, PAD], [7, 7, 12, 5, EOS, PAD, PAD]]
)


@cache
def composed(*words: str) -> DictConfig:
    return config.compose([*words], run_dir="RUN")


@cache
def factory(group: str, option: str) -> Any:
    return build(composed(f"{group}={option}"), group)


def built(attention: str, position: str, model: str) -> Any:
    """A model with large random weights, so that each token has others behind it; None: refused."""
    sizes = {"embed_dim": 12, "num_heads": 2, "num_layers": 2}
    chosen = {"attention": attention, "position": position}
    parts = {group: factory(group, option) for group, option in chosen.items()}
    torch.manual_seed(7)
    try:
        net = {"decoder": Decoder, "encoder_decoder": EncoderDecoder}[model](15, **parts, **sizes)
    except ValueError:
        return None
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(2).add_(0.1 * torch.randn_like(parameter))
        net.output.bias[EOS] -= 1
    return net.double().eval()


def generated(net: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """The tokens, and the logits of every step."""
    steps: list[Tensor] = []

    def keep(module: nn.Module, inputs: Any, logits: Tensor) -> None:
        steps.append(logits.reshape(len(logits), -1, logits.shape[-1])[:, -1])

    handle = net.output.register_forward_hook(keep)
    tokens = net.generate(SOURCE, max_length=T, **options)
    handle.remove()
    return tokens, torch.stack(steps, 1)


def check(attention: str, position: str, model: str) -> bool:
    """Compare with teacher forcing and with decoding without; whether there was anything to do."""
    net = built(attention, position, model)
    if net is None:
        return False
    assert (net.decoder.new_caches() is None) == (attention in WITHOUT)
    try:
        plain, _ = generated(net, use_cache=False)
    except ValueError as refusal:  # a bias, where there are no scores
        with pytest.raises(ValueError, match=re.escape(str(refusal))):
            generated(net)
        return False
    tokens, logits = generated(net)
    assert torch.equal(tokens, plain)
    with torch.no_grad():
        expected = net(SOURCE, tokens)
    lengths = (SOURCE != PAD).sum(1) - 1
    by_column = isinstance(net, Decoder) and attention not in WITHOUT
    for row, length in enumerate(lengths - lengths.min() if by_column else torch.zeros(3).int()):
        found = logits[row, length : length + tokens.shape[1]]
        end = (tokens[row] == EOS).nonzero()
        known = int(end[0]) + 1 if len(end) else len(found)
        assert_close(found[:known], expected[row, :known], rtol=1e-8, atol=1e-8)
    return True


@pytest.mark.parametrize("attention", FEW)
def test_every_kind_of_mechanism(attention: str) -> None:
    done = [check(attention, "sinusoidal", model) for model in MODELS]
    assert any(done)


@pytest.mark.parametrize("position", POSITIONS)
def test_every_encoding(position: str) -> None:
    done = [check(attention, position, "decoder") for attention in ("custom", "composed", "latent")]
    assert any(done)
    check("composed", position, "encoder_decoder")


@pytest.mark.slow
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_every_mechanism_with_every_encoding(attention: str) -> None:
    done = [check(attention, *rest) for rest in product(POSITIONS, MODELS)]
    assert any(done)


@pytest.mark.parametrize("attention", ["composed", "latent", "retention", "delta", "linear"])
def test_each_token_is_computed_once(attention: str) -> None:
    net = built(attention, "none", "decoder")
    read: list[int] = []
    net.embedding.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].shape[1]))
    net.generate(SOURCE, max_length=T)
    assert read == [2] + [1] * (len(read) - 1), (
        "the shortest source with its <sep>, then one a step"
    )


def test_keys_of_the_memory_are_computed_once() -> None:
    net = built("composed", "none", "encoder_decoder")
    keys: list[int] = []
    net.decoder.layers[0].cross_attn.register_forward_pre_hook(
        lambda _, inputs: keys.append(inputs[1].shape[1])
    )
    net.generate(SOURCE, max_length=T)
    assert keys == [SOURCE.shape[1]] + [0] * (len(keys) - 1)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("use_cache", [True, False])
def test_an_encoding_that_is_too_short_says_so_either_way(model: str, use_cache: bool) -> None:
    net = built("custom", "learned", model)
    for name, part in net.named_modules():
        if name.endswith("embedding.position"):
            part.table = nn.Embedding(13, 12, dtype=torch.float64)
    with torch.no_grad():
        net.output.bias[EOS] = -1e3
    with pytest.raises(ValueError, match="a sequence of length 14 is longer than"):
        net.generate(SOURCE, max_length=20, use_cache=use_cache)


def test_an_encoding_that_cannot_be_told_positions_is_computed_in_full() -> None:
    class Shifted(nn.Module):
        def forward(self, embeddings: Tensor) -> Tensor:
            return embeddings + embeddings.cumsum(1)

    net = built("custom", "none", "decoder")
    net.embedding.position = Shifted()
    assert torch.equal(
        net.generate(SOURCE, max_length=T), net.generate(SOURCE, max_length=T, use_cache=False)
    )


def test_rows_recorded_while_decoding_are_those_of_the_whole_map() -> None:
    net, source = built("composed", "rotary", "decoder"), SOURCE[:1]
    with record_attention(net) as steps:
        output = net.generate(source, max_length=5)
    with record_attention(net) as whole, torch.no_grad():
        net(source, output)
    rows = [one.weights for one in steps[::2]]  # of the first of two layers
    seen = 0
    for weights in rows:
        queries, keys = weights.shape[-2:]
        assert_close(weights, whole[0].weights[:, :, seen : seen + queries, :keys])
        seen = keys
    assert [row.shape[2] for row in rows] == [7] + [1] * (output.shape[1] - 1)


def test_blanks_and_rows_that_end_early() -> None:
    net = built("custom", "learned", "decoder")
    blanks = torch.rand(3, 6, generator=torch.Generator().manual_seed(1)) < 0.5
    outputs = [
        net.generate(SOURCE, max_length=9, blanks=blanks, use_cache=use) for use in (True, False)
    ]
    assert torch.equal(*outputs)
    with torch.no_grad():
        net.output.bias[EOS] += 1e3
    assert net.generate(SOURCE, max_length=T).tolist() == [[EOS]] * 3


def test_a_cache_joins_what_it_is_given() -> None:
    cache, generator = Cache(), torch.Generator().manual_seed(0)
    k = torch.randn(2, 3, 19, 5, generator=generator)
    v = torch.randn(2, 19, 7, generator=generator)
    start = 0
    for step in (4, 1, 0, 1, 5, 8):
        part = slice(start, start + step)
        start += step
        all_k, all_v = cache.extend(k=k[:, :, part], v=v[:, part])
        assert torch.equal(all_k, k[:, :, :start])
        assert torch.equal(all_v, v[:, :start])
        assert cache.length == start


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("attention", ["custom", "composed", "window", "latent"])
def test_causal_counts_from_the_kept_keys_on(attention: str, is_padded: bool) -> None:
    module, kept = factory("attention", attention)(12, 2).double().eval(), Cache()
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    padding = torch.arange(7) >= torch.tensor([[7], [2]]) if is_padded else None
    expected, weights = module(x, x, x, key_padding_mask=padding, is_causal=True)
    start = 0
    for step in (3, 1, 2, 1):
        seen, new = slice(0, start + step), x[:, start : start + step]
        hidden = None if padding is None else padding[:, seen]
        output, shown = module(new, new, new, key_padding_mask=hidden, is_causal=True, cache=kept)
        assert_close(output, expected[:, start : start + step])
        assert_close(shown, weights[:, :, start : start + step, seen])
        start += step


def test_a_state_takes_one_token_at_a_time() -> None:
    net, cache = built("linear", "none", "decoder").decoder.layers[0].self_attn, Cache()
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    net(x, x, x, is_causal=True, cache=cache)
    with pytest.raises(ValueError, match="one token at a time, got 5 keys"):
        net(x, x, x, need_weights=False, is_causal=True, cache=cache)
