"""Every key has a type, a range and a kind, checked before anything is made."""

import itertools
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from omegaconf import DictConfig, OmegaConf
from torch import nn

from mha_lab import config
from mha_lab.build import build
from mha_lab.config.signatures import check_arguments, check_value, describe
from mha_lab.config.validation import validate
from mha_lab.config.words import parse_words
from mha_lab.errors import UserError, shown
from mha_lab.ranges import FolderName, Positive, Probability, Seed, Share, Size, Text

Lab = Callable[..., tuple[int, str, str]]
CHOSEN = [
    (group, option)
    for group in config.groups()
    if group not in ("sweep", "experiment") and "/" not in group
    for option in config.options(group)
]


@cache
def default() -> DictConfig:
    """Composed once: that takes a fifth of a second."""
    return config.compose(["task=copy"], run_dir="RUN")


def composed(words: list[str]) -> DictConfig:
    """As Hydra does it; what only sets or removes values is done to a copy of the default."""
    items = parse_words(words)
    if any(item.key_or_group in config.groups() and item.value() for item in items):
        return config.compose(words, run_dir="RUN")
    cfg = default().copy()
    for item in items:
        if item.is_delete():
            node, _, name = item.key_or_group.rpartition(".")
            del (OmegaConf.select(cfg, node) if node else cfg)[name]
        else:
            OmegaConf.update(cfg, item.key_or_group, item.value(), merge=False)
    return cfg


@pytest.mark.parametrize(("group", "option"), CHOSEN)
def test_every_option_is_valid_as_it_stands(group: str, option: str):
    node = OmegaConf.load(config.option_files(group)[option])
    if "defaults" in node:
        cfg = config.compose([f"{group}={option}"], run_dir="RUN")
    else:
        cfg = default().copy()
        cfg[group] = node
    validate(cfg)


WRONG = [
    (["~trainer.max_steps"], "no 'trainer.max_steps', which every run needs"),
    (["~trainer.accelerator"], "no 'trainer.accelerator', which every run needs"),
    # (overrides, what the sentence says); kinds of mistakes, each for several keys
    *(
        ([f"trainer.{key}={value}"], f"trainer.{key} must be a whole number of at least 1")
        for key, value in zip(
            itertools.cycle(
                ("max_steps", "val_check_interval", "accumulate_grad_batches", "log_every_n_steps")
            ),
            ("abc", "''", "[1]", "null", "0", "-1", "1.5", "1e3", "true", "inf", "nan", "{a:1}"),
            strict=False,
        )
    ),
    (["model=3"], "model must be chosen"),
    (["model=null"], "model must be chosen, model=OPTION"),
    (["~model"], "model must be chosen"),
    (["data=null"], "data must be a node with a _target_"),
    (["~data"], "data must be a node"),
    (["task=null"], "task must be chosen"),
    (["~attention"], "attention must be chosen"),
    (["position=null"], "position must be chosen"),
    (["optimizer=null"], "optimizer must be chosen"),
    (["trainer=null"], "trainer must be chosen"),
    (["~callbacks"], "callbacks must be"),
    (["trainer.accelerator=tpu"], "trainer.accelerator must be one of auto, cpu"),
    (["trainer.strategy=dpp"], "did you mean 'ddp'"),
    (["trainer.devices=0"], "trainer.devices"),
    (["trainer.check_val_every_n_epoch=0"], "trainer.check_val_every_n_epoch"),
    (["trainer.gradient_clip_val=-1"], "trainer.gradient_clip_val must be a number of at least 0"),
    (["+trainer.foo=1"], "unknown key 'trainer.foo'"),
    (["+trainer.max_epochs=3"], "trainer.max_steps=N"),
    (["+trainer.max_time=3s"], "two digits each"),
    (["+attention.kv_rank=3"], "attention.kv_rank with attention=latent"),
    (["+attention.device=cpu"], "follows from trainer.accelerator"),
    (["attention/mixing=talking_heads", "+attention.mixing.num_heads=3"], "model.num_heads"),
    (["+trainer.logger=true"], "follows from logger"),
    (["callbacks.checkpoint.mode=foo"], "callbacks.checkpoint.mode must be one of min, max"),
    (["callbacks.checkpoint.monitor=val/acc"], "did you mean 'val/token_accuracy'"),
    (["callbacks.checkpoint=best"], "callbacks.checkpoint must be null or a node"),
    (["callbacks.progress_bar.refresh_rate=-1"], "refresh_rate"),
    (["+callbacks.progress_bar.foo=1"], "unknown key 'callbacks.progress_bar.foo'"),
    (["+logger.foo=1"], "unknown key 'logger.foo'"),
    (["+logger.name=x"], "follows from the run's folder"),
    (["seed=true"], "seed must be a whole number of at least 0 and below 4294967296, got True"),
    (["seed=-1"], "seed"),
    (["seed=4294967296"], "seed"),
    (["compile=1"], "compile must be true or false"),
    (["optimizer.decay_steps=-1"], "optimizer.decay_steps"),
    (["optimizer.lr=nan"], "optimizer.lr must be a number above 0, got nan"),
    (["optimizer.lr=inf"], "optimizer.lr"),
    (["optimizer.lr=1e400"], "optimizer.lr"),
    (["optimizer.weight_decay=nan"], "optimizer.weight_decay must be a number of at least 0"),
    (["optimizer.betas=[0.9]"], "two numbers"),
    (["optimizer.betas=[0.9,1]"], "optimizer.betas must be a list, each a number"),
    (["optimizer.decay=cosin"], "did you mean 'cosine'"),
    (["model.embed_dim=64.0"], "model.embed_dim"),
    (["model.dropout=true"], "model.dropout"),
    (["model.norm='\u0440re'"], "CYRILLIC SMALL LETTER ER"),
    (["model.num_heads={_target_:os.mkdir,path:x}"], "model.num_heads"),
    (["+attention.dropout=0.5"], "follows from model.dropout"),
    (["+attention.embed_dim=3"], "follows from model.embed_dim"),
    (["data.batch_size=0"], "data.batch_size"),
    (["+data.seed=3"], "follows from seed"),
    (["data.train_size=2.5"], "data.train_size"),
    (["task.max_length=1e1"], "task.max_length"),
    (["+task.foo=1"], "unknown key 'task.foo'"),
    (["+model.a={b:{c:1}}"], "unknown key 'model.a'"),
    # of another kind than the place asks for; none of them is called
    (["attention._target_=os.system"], "does not say what it makes"),
    (["attention._target_=pathlib.Path"], "must be an nn.Module"),
    (["attention._target_=os"], "is not a class or function"),
    (["attention._target_=nowhere.X"], "cannot be imported"),
    (["attention._target_=3"], "must name a class or function"),
    (["model._target_=torch.nn.Linear"], "must be a SequenceModel"),
    (["task._target_=mha_lab.models.encoder.Encoder"], "must be a task"),
    (["optimizer._target_=torch.optim.SGD"], "must be a recipe"),
    (["logger._target_=subprocess.Popen"], "must be a logger"),
    (["trainer._target_=shutil.rmtree"], "does not say what it makes"),
    (["position._target_=builtins.print"], "does not say what it makes"),
    (["+callbacks.x={_target_:os.mkdir,path:mark}"], "does not say what it makes"),
    (["+callbacks.x={_target_:pathlib.Path}"], "must be a Callback"),
    (["data._target_=builtins.dict"], "must be a TaskDataModule"),
]


def _all_that_is_made_early(words: list[str]) -> None:
    cfg = composed(words)
    validate(cfg)
    build(cfg, "optimizer")


@pytest.mark.parametrize(("words", "said"), WRONG, ids=lambda x: str(x)[:60])
def test_what_cannot_be_is_one_sentence(words: list[str], said: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        _all_that_is_made_early(words)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trainer.max_steps=abc"], "trainer.max_steps"),
        (["hydra.run.dir=''"], "hydra.run.dir must be a folder"),
        (["hydra.run.dir={file}"], "must be a folder"),
        (["-m", "hydra.sweep.dir={file}", "seed=0,1"], "must be a folder"),
        (["-m", "task=copy,sort", "optimizer.lr=1e-3,abc"], "task=copy optimizer.lr=abc: optim"),
        (["-m", "attention=latent,custom", "attention.kv_rank=3"], "with attention=latent"),
        (["hydra.run.dir=a/b/c", "model.num_heads=3"], "divisible"),
        (["seed=1", "seed=2"], "seed is given twice"),
        (["task=copy", "task=sort"], "task is given twice"),
        (["+experiment=copy", "experiment=sort"], "experiment is given twice"),
        (["task=files", "task.train=a=b/train.jsonl"], "'task.train=\"a=b/train.jsonl\"'"),
        (["task.train=my data (1)/t.jsonl"], "'task.train=\"my data (1)/t.jsonl\"'"),
        (["hydra.run.dir=outputs/lr=0.1"], "'hydra.run.dir=\"outputs/lr=0.1\"'"),
        (["model.embed_dim=\uff18"], "FULLWIDTH DIGIT EIGHT"),
        (["optimizer.lr=${nope.nope}"], "nope"),
        (["optimizer.lr=${oc.nope:1}"], "oc.nope"),
        (["data.cache_dir=\udc80"], "not UTF-8"),
    ],
)
def test_no_folder_is_made_for_a_mistake(
    words: list[str], said: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    code, _, err = lab("train", *(word.replace("{file}", "file") for word in words))
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("value", ["a=b", "my data (1)/t", "it's", 'a "b" c', "[1", "{a", "a,b=c"])
def test_the_quoting_that_is_shown_works(value: str):
    import shlex

    with pytest.raises(UserError) as caught:
        parse_words([f"key={value}"])
    (word,) = shlex.split(str(caught.value).split("; write ")[1])
    assert str(parse_words([word])[0].value()) == value


@pytest.mark.parametrize(
    ("hint", "right", "wrong"),
    [
        (Size, [1, 10**30], [0, True, 1.0, "1", None, [1]]),
        (Size | None, [None, 3], [0, "null"]),
        (Seed, [0, 2**32 - 1], [-1, 2**32]),
        (Positive, [1, 1e-9], [0, -1.0, float("nan"), float("inf"), 10**400, "1", True]),
        (Probability, [0, 1, 0.5], [1.01, -0.1]),
        (Share, [1, 1e-9], [0, 2]),
        (Text, ["a"], ["", 1, "\ud83d"]),
        (FolderName, ["a", "a b-1.2"], ["", ".a", "a/b", "a\\b", "a\n", "x" * 101]),
        (list[Size], [[], [1]], [[0], "a", {}]),
        (Literal["a", -1] | Size, ["a", -1, 1], ["b", -2]),
        (bool, [True], [1, "true", None]),
        (nn.Module | None, [None], [1, "a"]),
    ],
    ids=str,
)
def test_values_and_types(hint: object, right: list[object], wrong: list[object]):
    for value in right:
        check_value("key", hint, value)
    for value in wrong:
        with pytest.raises(UserError, match="key must be"):
            check_value("key", hint, value)


def test_types_in_words():
    assert describe(Size | None) == "a whole number of at least 1, or null"
    assert describe(Probability) == "a number of at least 0 and of at most 1"
    assert describe(Literal["pre", "post"]) == "one of pre, post"
    assert describe(list[Positive]) == "a list, each a number above 0"
    assert describe(dict[str, str]) == "keys with their values, {KEY: VALUE, ...}"


def test_a_nested_node_is_compared_with_the_argument_it_is_for():
    class Part(nn.Module):
        def __init__(self, size: Size = 1) -> None: ...

    def whole(part: Part | None = None, other: int = 0) -> nn.Module: ...

    check_arguments("attention", whole, {"part": {"_target_": "anything.At.All"}})
    cfg = default().copy()
    cfg.attention = {
        "_target_": f"{__name__}.whole_of_parts",
        "part": {"_target_": f"{__name__}.APart", "size": 0},
    }
    with pytest.raises(UserError, match=r"attention\.part\.size must be a whole number"):
        validate(cfg)
    cfg.attention.part = {"_target_": "pathlib.Path"}
    with pytest.raises(UserError, match=r"part\._target_='pathlib.Path' must be a APart"):
        validate(cfg)


class APart(nn.Module):
    def __init__(self, size: Size = 1) -> None:
        super().__init__()


def whole_of_parts(part: APart | None = None) -> nn.Module:
    raise AssertionError("validation makes nothing")


def test_what_cannot_be_seen_is_spelled():
    assert shown("\u0430") == "'\u0430' (with CYRILLIC SMALL LETTER A)"
    assert "COMBINING ACUTE ACCENT" in shown("e\u0301")
    assert "\\ud83d" in shown("\ud83d")
    assert shown("\ud83d").encode()
    assert len(shown("x" * 10**6)) < 200
    assert shown(10**5000)


def test_no_option_makes_pydantic_complain():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        validate(config.compose(["+experiment=copy"], run_dir="RUN"))
