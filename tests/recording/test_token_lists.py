"""What may be given as ``tokens=``, and the sentence for what may not."""

import re

import pytest
import torch
from torch import nn

from mha_lab import AttentionMap, ImageTokens, record_attention
from mha_lab.recording.labels import label_maps

L = 5
ROW = list("abcde")


def two(name="layer.attn", n=2):
    return [AttentionMap(name, torch.rand(n, 1, L, L).softmax(-1))]


class Encoding:
    def __init__(self, tokens, mask):
        self.tokens, self.attention_mask = tokens, mask


class Tokenizer:
    def convert_ids_to_tokens(self, ids): ...


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (ROW, "begins with 'a'; give one list of str a sample, of which there are 2"),
        ("abcde", "tokens are 'abcde'; give one list of str a sample"),
        ([ROW, "abcde"], "tokens hold 'abcde' where a list of one sample's tokens belongs"),
        ([ROW, None], "tokens hold None where a list"),
        ([ROW, [None] * L], "tokens hold None where one token belongs"),
        (([ROW, ROW], [ROW, ROW]), "where one token belongs; a pair (query tokens, key tokens)"),
        (torch.zeros(2, L), "tokens are a Tensor; give their tokens: [tokenizer.convert_ids"),
        ({"input_ids": torch.zeros(2, L)}, "tokens are a dict that holds ids alone; give their"),
        (Tokenizer(), "tokens are a Tokenizer, which does not know the batch"),
        ((x for x in ROW), "tokens are a generator"),
        ({"decoder.*": [ROW, ROW]}, "tokens are given for 'decoder.*', which matches no map"),
        ({"query": [ROW, ROW], "key": [ROW, ROW]}, "there are layer.attn"),
        ({}, "tokens are given for nothing, which matches no map"),
        ({"*": ([ROW], [ROW], [ROW])}, "tokens of 'layer.attn' are a tuple of 3; a pair is"),
        ([ImageTokens(torch.rand(3, 8, 8), (1, 3))] * 2, "here 1 + 3: first counts the class"),
    ],
)
def test_what_are_no_tokens(tokens, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        label_maps(two(), tokens)


def test_a_list_of_one_sample_behind_a_glob_too():
    one = two(n=1)
    assert label_maps(one, {"*": ROW})[0].query_tokens == [ROW]
    assert label_maps(one, {"*": (ROW, ROW[::-1])})[0].key_tokens == [ROW[::-1]]
    assert label_maps(one, {"*": (None, ROW)})[0].query_tokens is None
    assert label_maps([], {"x": ROW}) == []


def test_of_two_sequences_each_has_its_own_tokens():
    model = nn.Transformer(8, 2, 1, 1, 8, batch_first=True).eval()
    source = [list("vwxyz")]
    with record_attention(model, tokens=source) as maps:
        model(torch.randn(1, 5, 8), torch.randn(1, 7, 8))
    found = {one.name: (one.query_tokens, one.key_tokens) for one in maps}
    assert found["encoder.layers.0.self_attn"] == (source, source)
    assert found["decoder.layers.0.self_attn"] == (None, None)
    assert found["decoder.layers.0.multihead_attn"] == (None, source)


def test_the_batch_of_a_tokenizer_of_transformers():
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = {word: i for i, word in enumerate(["[PAD]", "the", "cat", "sat"])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[PAD]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    # The word that pads is a word of the text too, as where models pad with their end token.
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="the")
    batch = tokenizer(["the cat sat", "the cat"], padding=True, return_tensors="pt")
    module, x = nn.MultiheadAttention(4, 1, batch_first=True), torch.randn(2, 3, 4)
    with record_attention(module, tokens=batch) as maps:
        module(x, x, x)
    assert maps[0].query_tokens == [["the", "cat", "sat"], ["the", "cat", ""]]


def test_an_image_is_on_axes_of_its_length_alone():
    image = ImageTokens(torch.rand(3, 8, 8), (2, 2))
    maps = [AttentionMap("a", torch.rand(1, 1, 5, 5)), AttentionMap("b", torch.rand(1, 1, 7, 7))]
    first, second = label_maps(maps, image)
    assert first.images == (image,)
    assert (second.query_tokens, second.images) == (None, None)
