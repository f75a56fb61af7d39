"""``check``: every check by name, all failures listed."""

from pathlib import Path

import pytest
from torch import nn

from mha_lab import cli
from mha_lab.testing import attention_checks, model_checks, position_checks, task_checks


class Leaky(nn.MultiheadAttention):
    """Forgets its masks."""

    def __init__(self, embed_dim: int, num_heads: int, *, dropout: float = 0.0) -> None:
        super().__init__(embed_dim, num_heads, dropout=dropout, batch_first=True)

    def forward(self, query, key, value, **options):
        kept = {k: v for k, v in options.items() if k in ("need_weights", "average_attn_weights")}
        return super().forward(query, key, value, **kept)


class Narrow(Leaky):
    """Multiplies matrices that do not fit."""

    def forward(self, query, key, value, **options):
        return query @ key, None


def test_every_check_of_what_is_named_is_told(capsys: pytest.CaptureFixture[str]):
    words = ["attention=custom", "position=sinusoidal", "model=decoder", "task=sort"]
    assert cli.run(["check", *words, "task.max_length=4"]) == 0
    out = capsys.readouterr().out
    for checks in (attention_checks(), position_checks(), model_checks(), task_checks()):
        for check in checks:
            assert f"  ok      {check.__name__.replace('_', ' ')}\n" in out
    assert out.count("all checks passed") == 4
    assert "attention=custom\n" in out


def test_all_failures_are_listed_with_their_reason(capsys: pytest.CaptureFixture[str]):
    target = f"attention._target_={__name__}.Leaky"
    assert cli.run(["check", "attention=custom", target]) == 1
    out = capsys.readouterr().out
    assert "FAILED  true blocks in a boolean mask" in out
    assert "FAILED  padded keys do not matter" in out
    assert "ok      output has the shape of the query" in out
    assert " checks failed" in out
    assert "Traceback" not in out


def test_an_error_is_told_with_the_line_of_the_subject(capsys: pytest.CaptureFixture[str]):
    assert cli.run(["check", "attention=custom", f"attention._target_={__name__}.Narrow"]) == 1
    out = capsys.readouterr().out
    assert "RuntimeError(" in out
    assert f"in {Path(__file__).name}, line " in out
    assert ": return query @ key, None\n" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "attention=NAME"),
        (["optimizer=adamw"], "attention=NAME"),
        (["attention=costum"], "did you mean 'custom'"),
        (["model=decoder", "attention=builtin", "position=rotary"], "choose attention=composed"),
        (["model=decoder", "model.num_heads=3"], "divisible by num_heads"),
        (["model=decoder", "model.depth=3"], "model.depth"),
        (["position=learned", "position.max_lenght=3"], "position.max_lenght"),
    ],
)
def test_what_cannot_be_checked_is_said(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    assert cli.run(["check", *words]) == 2
    assert said in capsys.readouterr().err


def test_what_training_would_refuse_is_refused(capsys: pytest.CaptureFixture[str]):
    assert cli.run(["check", "attention=builtin", "+attention.embed_dim={a:1}"]) == 2
    assert "cannot be set here" in capsys.readouterr().err


def test_a_model_is_checked_with_what_it_is_given(capsys: pytest.CaptureFixture[str]):
    words = ["model=encoder_decoder", "attention=custom", f"attention._target_={__name__}.Leaky"]
    assert cli.run(["check", *words]) == 1
    told = capsys.readouterr().out.partition("model=encoder_decoder")[2]
    assert "FAILED  later target tokens do not matter" in told
    assert "FAILED  samples do not mix" in told
    assert "ok      state dict carries everything" in told


def test_a_small_task_is_checked_without_a_word_of_warning(recwarn: pytest.WarningsRecorder):
    assert cli.run(["check", "task=mingpt_sort"]) == 0
    assert not recwarn.list
