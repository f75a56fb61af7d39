"""The config tree: composing, changing, and the sentences that explain faults."""

from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from mha_lab import config
from mha_lab.config.tree import known_keys
from mha_lab.errors import UserError
from mha_lab.other_names import OTHER_NAMES


def test_masked_decoder_chooses_the_decoder(tmp_path: Path):
    cfg = config.compose(["attention=masked_decoder"], run_dir=tmp_path)
    assert cfg.choices.model == "decoder"
    assert cfg.choices.attention == "masked_decoder"
    assert cfg.attention._target_.endswith("MultiheadAttention")


def test_an_explicit_model_wins_over_masked_decoder(tmp_path: Path):
    cfg = config.compose(["attention=masked_decoder", "model=encoder_decoder"], run_dir=tmp_path)
    assert cfg.choices.model == "encoder_decoder"


def test_experiment_is_noted_among_the_choices(tmp_path: Path):
    cfg = config.compose(["+experiment=sort", "seed=7"], run_dir=tmp_path)
    assert (cfg.choices.experiment, cfg.choices.task, cfg.seed) == ("sort", "sort", 7)
    assert cfg.run_dir == str(tmp_path)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["attention=cutsom"], "did you mean 'custom'"),
        (["modle.embed_dim=8"], "did you mean 'model.embed_dim'"),
        (["model.embed_dmi=8"], "did you mean 'model.embed_dim'"),
        (["+grup=copy"], "unknown key or group 'grup'"),
        (["trainer.max_time=00:00:30:00"], "add it with +trainer.max_time="),
        (["+experimnt=copy"], "did you mean 'experiment'"),
        (["experiment=copy"], "+experiment="),
        (["+experiment=cpoy"], "did you mean 'copy'"),
        (["lr=1e-3"], "did you mean 'optimizer.lr'"),
        (["trainer=[1]"], "trainer must be chosen"),
        (["attention.window=3"], "there is attention=window"),
        (["attention.kv_rank=3"], "attention.kv_rank with attention=latent"),
        (["position=none", "position.max_length=5"], "with position=learned|randomized"),
        (["trainer.max_epochs=3"], "trainer.max_steps=N"),
        (["+trainer.strategy=ddp"], "without a plus sign, trainer.strategy=VALUE"),
        (["learning_rate=1e-3"], "did you mean 'optimizer.lr'"),
        (["heads=4"], "did you mean 'model.num_heads'"),
        (["optimizer.learning_rate=1"], "did you mean 'optimizer.lr'"),
        (["batch_size=64"], "did you mean 'data.batch_size'"),
        (["epochs=3"], "trainer.max_steps=N"),
        (["trainer.epochs=3"], "trainer.max_steps=N"),
        (["steps=100"], "did you mean 'trainer.max_steps'"),
        (["dropout=.1"], "did you mean 'model.dropout'"),
        (["position=rope"], "did you mean 'rotary'"),
        (["attention=builtin", "attention/mixing=differential"], "choose attention=composed, or"),
        (["attention=gqa"], "did you mean 'grouped_query'"),
        (["model=lstm"], "did you mean 'recurrent'"),
        (["seed=1,2"], "train -m"),
        (["attention="], "attention must be chosen"),
        (["=3"], "cannot read '=3'"),
        (["tsak=copy"], "did you mean 'task'"),
        (["seed=[1"], "seed=[1"),
    ],
)
def test_a_mistake_is_explained_in_one_sentence(tmp_path: Path, overrides: list[str], said: str):
    with pytest.raises(UserError) as caught:
        config.compose(overrides, run_dir=tmp_path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def composed() -> DictConfig:
    return config.compose(["+experiment=copy"], run_dir="RUN")


@pytest.fixture
def run(composed: DictConfig, tmp_path: Path) -> Path:
    config.save(composed, tmp_path)
    return tmp_path


def test_a_saved_config_comes_back(composed: DictConfig, run: Path):
    before = composed.copy()
    before.run_dir = str(run)
    assert OmegaConf.to_container(config.load_run(run)) == OmegaConf.to_container(before)


def test_a_moved_run_knows_its_new_folder(run: Path, tmp_path_factory: pytest.TempPathFactory):
    moved = run.rename(tmp_path_factory.mktemp("elsewhere") / "moved")
    assert config.load_run(moved).run_dir == str(moved)


def test_a_value_and_a_whole_group_can_be_overridden(run: Path):
    cfg = config.load_run(run, ["task.max_length=13", "task=sort", "seed=5"])
    assert (cfg.choices.task, cfg.task.max_length, cfg.seed) == ("sort", 13, 5)
    assert cfg.task._target_ != config.load_run(run).task._target_


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["task.max_lenght=3"], "did you mean 'task.max_length'"),
        (["task=srot"], "did you mean 'sort'"),
        (["sede=3"], "did you mean 'seed'"),
        (["attention.kv_rank=3"], "with attention=latent"),
        (["trainer.max_epochs=3"], "trainer.max_steps=N"),
    ],
)
def test_a_mistyped_override_of_a_run(run: Path, overrides: list[str], said: str):
    with pytest.raises(UserError, match=said):
        config.load_run(run, overrides)


def test_not_a_run_folder(tmp_path: Path):
    with pytest.raises(UserError, match="does not exist"):
        config.load_run(tmp_path / "nowhere")
    with pytest.raises(UserError, match="holds no config"):
        config.load_run(tmp_path)
    (tmp_path / "config.yaml").write_text("a: [1")
    with pytest.raises(UserError, match="cannot read"):
        config.load_run(tmp_path)
    (tmp_path / "config.yaml").write_text("a: 1")
    with pytest.raises(UserError, match="not the config of a run"):
        config.load_run(tmp_path)


@pytest.mark.parametrize("group", config.groups())
def test_every_option_describes_itself(group: str):
    assert all(config.options(group).values()), f"a YAML in configs/{group} has no first comment"


def test_what_others_call_a_key_or_an_option_is_one_here():
    known = {
        *known_keys(),
        *(option for group in config.groups() for option in config.options(group)),
    }
    assert not {here for here in OTHER_NAMES.values() if here not in known}
    assert not {other for other in OTHER_NAMES if other in known}
