"""Each script of experiments/any_model draws its picture and prints what the README shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "experiments" / "any_model"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
SCRIPTS = sorted(FOLDER.glob("*.py"))
QUICK = {"hand_written"}
NUMBER = re.compile(r"\d+\.\d+")


def shown(script):
    """What the README shows below the script's command."""
    pattern = rf"```sh\npython experiments/any_model/{script.name}\n```\n\n```text\n(.*?)```"
    return re.search(pattern, README, re.DOTALL)[1]


def test_every_kind_of_model_has_its_script():
    assert {script.stem for script in SCRIPTS} == {
        "hand_written",
        "hf_decoder",
        "hf_encoder",
        "hf_encoder_decoder",
        "hf_vision",
        "lightning_module",
        "our_model",
        "stock_transformer",
    }


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script_is_short_and_its_picture_shown(script):
    assert len(script.read_text(encoding="utf-8").splitlines()) < 40
    picture = script.with_suffix(".png")
    assert f"]({picture.name})" in README
    assert picture.stat().st_size < 150_000
    assert shown(script)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, id=script.stem, marks=[] if script.stem in QUICK else pytest.mark.slow)
        for script in SCRIPTS
    ],
)
def test_script_draws_and_prints_what_the_readme_shows(script, tmp_path):
    copy = shutil.copy(script, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, str(copy)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr
    lines = shown(script).splitlines()
    printed = done.stdout.splitlines()[-len(lines) :]  # Lightning prints more before
    assert [NUMBER.sub("#", line) for line in printed] == [NUMBER.sub("#", line) for line in lines]
    numbers = [[float(x) for x in NUMBER.findall("\n".join(text))] for text in (printed, lines)]
    assert numbers[0] == pytest.approx(numbers[1], abs=0.2)
    assert {path.name for path in tmp_path.iterdir()} == {script.name, f"{script.stem}.png"}
    pixels = np.asarray(Image.open(tmp_path / f"{script.stem}.png").convert("RGB"))
    assert pixels.reshape(-1, 3).std() > 20  # not an empty page
