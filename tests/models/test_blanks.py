"""Targets that ask nothing at some places, and the encoder that is read along its source."""

import pytest
import torch
from torch.testing import assert_close

from mha_lab.models.encoder import Encoder
from mha_lab.tasks.batch import Batch, blanks
from mha_lab.training.module import SequenceModule, TokenRows, accuracies, token_loss
from tests.models.test_models import BOS, EOS, MODELS, N, S, V, make, rows

PAD = 0


@pytest.fixture
def source():
    return rows([10, 6, 9, 7, 8], S)


def with_blanks(ids):
    """Every third place of each row asks nothing, the last row's all."""
    column = torch.arange(ids.shape[1])
    is_symbol = ids > EOS
    hidden = is_symbol & ((column % 3 == 0) | (torch.arange(len(ids)) == len(ids) - 1)[:, None])
    return ids.masked_fill(hidden, PAD)


@pytest.mark.parametrize("model", MODELS)
def test_generate_puts_padding_where_nothing_is_asked(model):
    source = rows([S - 1] * N, S)
    net = make(model)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(3)  # outputs that differ from place to place
    target = with_blanks(source)
    nothing = blanks(target)
    output = net.generate(source, max_length=S, blanks=nothing)
    ended = (output == EOS).cumsum(1) > 0
    inside = nothing[:, : output.shape[1]] & ~ended
    assert inside.any()
    assert (output[inside] == PAD).all()
    # What was decoded is what teacher forcing predicts when the padding is what is read.
    net.eval()
    forced = net(source[:, :S], output).argmax(-1)
    asked = ~nothing[:, : output.shape[1]] & (
        (output == EOS).cumsum(1) - (output == EOS).int() == 0
    )
    assert torch.equal(output[asked], forced[asked])


def test_loss_and_accuracy_are_over_what_is_asked(source):
    target = with_blanks(source)
    logits = torch.randn(N, S, V)
    asked = target != PAD
    changed = logits.clone()
    changed[blanks(target)] = torch.randn(int(blanks(target).sum()), V)
    assert_close(token_loss(logits, target), token_loss(changed, target))
    by_hand = torch.nn.functional.cross_entropy(logits[asked], target[asked])
    assert_close(token_loss(logits, target), by_hand)
    share, whole = accuracies(logits, target)
    assert_close(share, (logits.argmax(-1)[asked] == target[asked]).float().mean())
    right = logits.scatter(2, target[..., None], 99.0)
    assert accuracies(right, target)[1].all()
    assert not whole.all()


def test_names_on_the_axes_tell_blanks_from_padding():
    from mha_lab.tasks.vocabulary import Vocabulary

    names = TokenRows(Vocabulary(["a", "b"]), torch.tensor([[BOS, 0, 5, 0, 0]]))
    assert names[0] == ["<bos>", "_", "a", "", ""]


def test_the_causal_encoder_sees_nothing_later(source):
    net = make(Encoder, is_causal=True).double()
    before = net(source, source)
    for t in range(5):
        changed = source.clone()
        changed[:, t] = (source[:, t] + 1 - 5) % (V - 5) + 5
        after = net(changed, changed)
        assert_close(after[:, :t], before[:, :t], rtol=0, atol=1e-12)
        assert (after[:, t] - before[:, t]).abs().amax(-1).min() > 1e-6


def test_the_causal_encoder_does_not_mind_its_batch_mates(source):
    net = make(Encoder, is_causal=True).double()
    together = net(source, source)
    for n in range(N):
        length = int((source[n] != PAD).sum())
        row = source[n : n + 1, :length]
        assert_close(together[n, :length], net(row, row)[0], rtol=1e-9, atol=1e-9)


def test_a_task_along_the_sequence_trains():
    from mha_lab.tasks.recall.induction import induction_task
    from mha_lab.training.optimizer import AdamWRecipe

    task = induction_task(max_length=7, vocab_size=5)
    net = make(Encoder, is_causal=True)
    module = SequenceModule(net, task.vocabulary, AdamWRecipe(lr=0.01))
    batch = task.draw(31, torch.Generator().manual_seed(0))
    loss = token_loss(net(*batch), batch.target)
    loss.backward()
    assert all(p.grad.isfinite().all() for p in net.parameters())
    query, _ = module.attention_tokens(Batch(*batch))["encoder.*.self_attn"]
    assert len(query) == 31
