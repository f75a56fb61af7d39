"""A study of two arms that takes a second or two."""

from pathlib import Path

import pytest
import yaml

TINY = {
    "title": "A tiny study",
    "question": "Does it run?",
    "source": "Nobody 2026, section 7",
    "settings": "+experiment=copy logger=csv callbacks.attention_maps=null trainer.max_steps=4 "
    "trainer.val_check_interval=2 data.batch_size=4 data.validation_size=8 data.test_size=8 "
    "task.max_length=3 model.embed_dim=8 model.num_heads=2",
    "arms": {
        "layers": {1: "model.num_layers=1", 2: "model.num_layers=2"},
        "position": {"none": "position=none", "rotary": "position=rotary attention=composed"},
    },
    "seeds": 2,
    "lengths": ["1-3", "4-5"],
    "samples": 7,
    "show": ["token_accuracy_forced", "steps"],
    "claims": [
        {
            "says": "as many steps as asked for",
            "measure": "steps",
            "of": {"layers": [1, 2]},
            "at_least": 4,
            "theirs": "4",
        },
        {
            "says": "what cannot be",
            "measure": "steps",
            "higher": {"layers": 1},
            "lower": {"layers": 2},
        },
    ],
    "figure": {"kind": "lines", "measure": "token_accuracy_forced", "x": "lengths",
               "colour": "layers", "panels": "position", "caption": "nothing to see"},
    "quick": {"seeds": 1, "only": {"position": ["none"]}},
}  # fmt: skip


def write_study(folder: Path, **changes: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(yaml.safe_dump({**TINY, **changes}, sort_keys=False))
    return folder


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The study's folder, below the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MHA_LAB_CACHE", str(tmp_path / "cache"))
    return write_study(tmp_path / "experiments" / "tiny")
