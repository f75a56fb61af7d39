"""Which tokens stand on the axes; labels that do not fit are a sentence, never the end of a run."""

import re
import warnings

import pytest
import torch
from tiny_modules import (
    PACKAGES,
    Crossing,
    Encoder,
    L,
    N,
    S,
    batches_of_ids,
    batches_of_pairs,
    fit,
    loader,
    module_class,
)

from mha_lab import AttentionMapLogger
from mha_lab.maps.attention_map import AttentionMap
from mha_lab.recording.labels import label_maps
from mha_lab.recording.tokenizer_labels import tokenize_maps
from mha_lab.tensorboard.reader import read_attention

LETTERS = "abcdefghijklm"
FIRST = "encoder.layers.0.self_attn"


def letters(batch):
    return [[LETTERS[i] for i in row] for row in batch["ids"].tolist()]


EXPECTED = letters(next(iter(batches_of_ids(1, seed=2))))


class Words:
    """A tokenizer, as far as it is used: id 0 is padding."""

    pad_token_id = 0

    def convert_ids_to_tokens(self, i):
        return f"w{i}"


def module_of(steps=Encoder, **attributes):
    return module_class(PACKAGES[0], type(steps.__name__, (steps,), attributes))()


def logged(folder, tokens=None, samples=N, **options):
    fit(folder, AttentionMapLogger(tokens=tokens, samples=samples), max_epochs=1, **options)
    return read_attention(folder)


def axes(one):
    return one.query_tokens, one.key_tokens


# --- where they come from -----------------------------------------------------------------------


def test_a_function_of_the_batch(tmp_path):
    batch = {"ids": torch.tensor([[0, 1, 0, 2, 1], [3, 4, 5, 6, 7], [8, 8, 9, 9, 9]])}
    maps = logged(tmp_path, letters, validation=loader([batch]))
    assert len(maps) == 2
    for one in maps:
        assert axes(one) == ([list("abacb"), list("defgh"), list("iijjj")],) * 2
        assert {"duplicate_token", "induction"} <= set(one.scores)


def test_only_the_chosen_samples_are_labelled(tmp_path):
    for one in logged(tmp_path, letters, samples=[2, 1]):
        assert axes(one) == ([EXPECTED[2], EXPECTED[1]],) * 2


def test_the_modules_own_method(tmp_path):
    module = module_of(attention_tokens=lambda self, batch: letters(batch))
    for one in logged(tmp_path, module=module):
        assert axes(one) == (EXPECTED, EXPECTED)


def test_what_is_given_comes_before_the_modules_own(tmp_path):
    module = module_of(attention_tokens=lambda self, batch: 1 / 0)
    for one in logged(tmp_path, letters, module=module):
        assert axes(one) == (EXPECTED, EXPECTED)


def test_both_sequences_of_cross_attention(tmp_path):
    queries = [[f"q{i}" for i in range(L)]] * N
    keys = [[f"k{i}" for i in range(S)]] * N
    one = logged(
        tmp_path,
        lambda batch: {"attention": (queries, keys)},
        module=module_of(Crossing),
        train=batches_of_pairs(1),
        validation=batches_of_pairs(1),
    )[0]
    assert axes(one) == (queries, keys)


def test_one_list_for_all_maps_goes_where_it_fits(tmp_path):
    keys = [[f"k{i}" for i in range(S)]] * N
    one = logged(
        tmp_path,
        lambda batch: keys,
        module=module_of(Crossing),
        train=batches_of_pairs(1),
        validation=batches_of_pairs(1),
    )[0]
    assert axes(one) == (None, keys)


def test_globs_choose_the_maps(tmp_path):
    upper = [[token.upper() for token in row] for row in EXPECTED]
    tokens = {"encoder.layers.1.*": (upper, None), "encoder.*": EXPECTED}
    first, second = logged(tmp_path, lambda _: tokens)
    assert axes(first) == (EXPECTED, EXPECTED)
    assert axes(second) == (upper, None)


def test_a_glob_of_whole_paths_comes_before_one_of_their_ends(tmp_path):
    upper = [[token.upper() for token in row] for row in EXPECTED]
    tokens = {"layers.*": EXPECTED, "encoder.layers.1.*": upper}
    first, second = logged(tmp_path, lambda _: tokens)
    assert (axes(first), axes(second)) == ((EXPECTED, EXPECTED), (upper, upper))


def test_a_stand_in_tokenizer(tmp_path):
    ids = next(iter(batches_of_ids(1, seed=2)))["ids"]
    expected = [["" if i == 0 else f"w{i}" for i in row] for row in ids.tolist()]
    module = module_of(
        forward=lambda self, batch: self.encoder(self.embedding(batch["input_ids"])),
        by_hand=lambda self, batch: None,
    )
    batch = loader([{"input_ids": ids}])
    for one in logged(tmp_path, Words(), module=module, train=batch, validation=batch):
        assert axes(one) == (expected, expected)


def test_a_tokenizer_of_transformers(tmp_path):
    """Trained in memory on two sentences; a BERT reads what it made."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    sentences = ["the cat saw the dog", "a dog"]
    trainer = tokenizers.trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"])
    words.train_from_iterator(sentences, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]"
    )
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=22,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=17,
    )

    class Bert(Encoder):
        def __init__(self):
            super().__init__()
            self.model = transformers.BertModel(config, add_pooling_layer=False)

        def forward(self, batch):
            return self.model(**batch).last_hidden_state

        def by_hand(self, batch):
            return None

    batch = loader([dict(tokenizer(sentences, return_tensors="pt", padding=True))])
    module = module_class(PACKAGES[0], Bert)()
    (one,) = logged(tmp_path, tokenizer, samples=2, module=module, train=batch, validation=batch)
    assert one.name == "model.encoder.layer.0.attention.self"
    expected = [["the", "cat", "saw", "the", "dog"], ["a", "dog", "", "", ""]]
    assert axes(one) == (expected, expected)


# --- what does not fit --------------------------------------------------------------------------

WITHOUT = "attention maps are logged without tokens: ValueError: "


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (
            {"*": [["a"] * 7] * N},
            f"'{FIRST}' was given 7 query tokens; its query axis has length {L}",
        ),
        (
            {"*": (None, [["a"] * 7] * N)},
            f"'{FIRST}' was given 7 key tokens; its key axis has length {L}",
        ),
        (
            [["a"] * 7] * N,
            "tokens of length 7 fit on no axis; the maps' axes have the lengths 5",
        ),
        (
            [["a"] * L] * 2,
            f"'{FIRST}' needs tokens of sample 2; tokens were given of 2 samples",
        ),
        (
            {"*": [["a"] * L] * 1},
            f"'{FIRST}' needs tokens of sample 2; tokens were given of 1 sample",
        ),
        (
            ["a"] * L,
            "tokens are one list that begins with 'a'; give one list of str a sample, of which "
            "there are 3",
        ),
        ({"*": "abc"}, "tokens are 'abc'; give one list of str a sample"),
        (7, "tokens are 7; give one list of str a sample"),
        (
            torch.zeros(N, L),
            "tokens are a Tensor; give their tokens: [tokenizer.convert_ids_to_tokens(row) for row "
            "in ids]",
        ),
    ],
)
def test_what_does_not_fit_is_said_once_and_training_goes_on(tmp_path, tokens, sentence):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(tmp_path, AttentionMapLogger(tokens=lambda batch: tokens, samples=N))
    said = [str(one.message) for one in caught if "without tokens" in str(one.message)]
    assert said == [WITHOUT + sentence]
    maps = read_attention(tmp_path)
    assert [one.step for one in maps] == [4, 4, 8, 8]
    assert [axes(one) for one in maps] == [(None, None)] * 4


def test_an_error_in_the_function_is_said(tmp_path):
    sentence = "attention maps are logged without tokens: KeyError: 'words'"
    with pytest.warns(UserWarning, match=re.escape(sentence)):
        maps = logged(tmp_path, lambda batch: batch["words"])
    assert axes(maps[0]) == (None, None)


def test_a_batch_in_which_the_tokenizer_finds_no_ids_is_said(tmp_path):
    sentence = "the batch holds no ids for the tokenizer: no 'input_ids' (N, L) of whole numbers"
    with pytest.warns(UserWarning, match=re.escape(WITHOUT + sentence)):
        maps = logged(tmp_path, Words())
    assert axes(maps[0]) == (None, None)


def test_fewer_tokens_than_positions_leave_the_end_without_labels(tmp_path):
    for one in logged(tmp_path, lambda batch: [["x", "y"]] * N):
        assert axes(one) == ([["x", "y", "", "", ""]] * N,) * 2


def test_tokens_of_maps_that_take_none_are_no_mistake():
    """In a vision transformer with a text tower, the text's tokens fit on some maps only."""
    maps = [
        AttentionMap("text", torch.rand(1, 2, 5, 5)),
        AttentionMap("image", torch.rand(1, 2, 3, 3)),
    ]
    text, image = label_maps(maps, [list("abcde")])
    assert (axes(text), axes(image)) == (([list("abcde")],) * 2, (None, None))


# --- what a tokenizer reads of a batch ----------------------------------------------------------

IDS = torch.tensor([[4, 7, 0], [9, 2, 6]])
WORDS = [["w4", "w7", ""], ["w9", "w2", "w6"]]


def a_map(name, queries, keys, kind="self"):
    return AttentionMap(name, torch.rand(2, 1, queries, keys), kind)


@pytest.mark.parametrize("batch", [IDS, (IDS, 5), [{"input_ids": IDS}, None], {"input_ids": IDS}])
def test_where_ids_may_stand_in_a_batch(batch):
    (one,) = tokenize_maps([a_map("layer", 3, 3)], Words(), batch)
    assert axes(one) == (WORDS, WORDS)


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ({"decoder_input_ids": torch.tensor([[1, 3], [8, 0]])}, [["w1", "w3"], ["w8", ""]]),
        ({"labels": torch.tensor([[5, 3], [8, -100]])}, [["<start>", "w5"], ["<start>", "w8"]]),
    ],
)
def test_source_and_target_of_an_encoder_decoder(given, target):
    maps = [
        a_map("encoder.layer", 3, 3),
        a_map("decoder.layer", 2, 2, "masked"),
        a_map("decoder.cross", 2, 3, "cross"),
    ]
    labelled = tokenize_maps(maps, Words(), {"input_ids": IDS, **given})
    assert [axes(one) for one in labelled] == [(WORDS, WORDS), (target, target), (target, WORDS)]


def test_tokens_of_samples_that_are_not_recorded_are_not_made():
    class Lazy(list):
        def __getitem__(self, index):
            made.append(index)
            return super().__getitem__(index)

        def __iter__(self):
            raise AssertionError("all of them are made")

    made = []
    maps = [AttentionMap("a", torch.rand(1, 2, 3, 3), samples=(5,))]
    (one,) = label_maps(maps, {"*": Lazy([["x", "y", "z"]] * 7)})
    assert one.key_tokens == [["x", "y", "z"]]
    assert set(made) <= {0, 5}
