"""The commands around training: list, help, evaluate, predict, dashboard, bench; their mistakes."""

import csv
import json
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from small_runs import TINY

from mha_lab import config, read_attention
from mha_lab.cli import COMMANDS

Lab = Callable[..., tuple[int, str, str]]


def test_help_names_every_command(lab: Lab):
    code, out, _ = lab("--help")
    assert code == 0
    assert all(f"\n  {command}" in out for command in COMMANDS)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_its_help(command: str, lab: Lab):
    code, out, _ = lab(command, "--help")
    assert code == 0
    assert f"python -m mha_lab {command}" in out


def test_list_names_every_option(lab: Lab):
    code, out, _ = lab("list")
    assert code == 0
    for group in config.groups():
        for option, line in config.options(group).items():
            assert f"  {option}" in out
            assert line in out


@pytest.mark.parametrize("which", ["attention", "loop", "recording", "sweep", "pruning"])
def test_each_benchmark_has_its_own_help(which: str, lab: Lab):
    code, out, _ = lab("bench", which, "--help")
    assert code == 0
    assert f"mha_lab bench {which}" in out
    others = {"attention", "loop", "recording", "sweep", "pruning"} - {which}
    assert not any(f"bench {other} " in out for other in others)


def test_help_is_printed_as_written(lab: Lab):
    _, out, _ = lab("sweep", "--help")
    assert "model.embed_dim=32,64 \\\n" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("words", [["--help"], ["list"], ["train", "--help"], ["report", "--help"]])
def test_quick_answers_do_not_import_torch(words: list[str]):
    code = (
        "import sys; from mha_lab.cli import run; "
        f"assert run({words!r}) == 0; "
        "heavy = {'torch', 'pytorch_lightning', 'datasets', 'matplotlib'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_evaluate_repeats_the_test_of_the_run(lab: Lab, trained: Path):
    code, out, err = lab("evaluate", f"run={trained}")
    assert code == 0, err
    summary = json.loads((trained / "summary.json").read_text())
    kept = json.loads((Path(out.strip().splitlines()[-1]) / "summary.json").read_text())
    for key in ("test/loss", "test/token_accuracy", "test/sequence_accuracy"):
        assert kept[key] == pytest.approx(summary[key])
    page, folder = out.strip().splitlines()[-2:]
    assert Path(page) == Path(folder) / "maps.html"
    assert '"query_tokens"' in Path(page).read_text()


def test_evaluate_at_other_lengths(lab: Lab, trained: Path):
    code, out, err = lab(
        "evaluate", f"run={trained}", "task.min_length=13", "task.max_length=17", "checkpoint=last"
    )
    assert code == 0, err
    with (Path(out.strip().splitlines()[-1]) / "accuracy_by_length.csv").open() as stream:
        lengths = {int(row["length"]) for row in csv.DictReader(stream)}
    assert lengths <= set(range(13, 18))
    assert len(lengths) > 1


def test_evaluate_on_another_task(lab: Lab, trained: Path):
    code, out, err = lab("evaluate", f"run={trained}", "task=sort")
    assert code == 0, err
    assert "test/sequence_accuracy" in out


def test_evaluate_says_what_was_tested_and_what_its_numbers_are(lab: Lab, trained: Path):
    code, out, err = lab("evaluate", f"run={trained}", "task.max_length=13", "checkpoint=last")
    assert code == 0, err
    first, *rest = out.splitlines()
    assert first == "copy · custom · learned · encoder_decoder · seed 0 · last weights, of step 10"
    whole = next(line for line in rest if line.startswith("test/sequence_accuracy"))
    assert re.search(r"of 29 sequences, wholly right, \d+ of them longer than in training", whole)
    tokens = next(line for line in rest if line.startswith("test/token_accuracy"))
    assert tokens.endswith("of their tokens, each given the right ones before; no padding")
    assert "it/s" not in out + err  # no bar of Lightning's


def test_predict_prints_the_output(lab: Lab, trained: Path):
    code, out, err = lab("predict", f"run={trained}", "3 1 2")
    assert code == 0, err
    assert set(out.split()) <= {str(symbol) for symbol in range(10)} | {"<unk>", "<sep>", "<bos>"}


def test_predict_draws_its_maps(lab: Lab, trained: Path, tmp_path: Path):
    figure = tmp_path / "out.png"
    code, out, err = lab("predict", f"run={trained}", "3 1 2", f"figure={figure}")
    assert code == 0, err
    assert out.strip().splitlines()[-2:] == [str(figure.with_suffix(".html")), str(figure)]
    assert "<canvas" not in out
    assert '"query_tokens"' in figure.with_suffix(".html").read_text()
    width, height = Image.open(figure).size
    assert width > 500
    assert height > 500


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trian"], "did you mean 'train'"),
        (["list", "atention"], "did you mean 'attention'"),
        (["evaluate"], "run=FOLDER"),
        (["evaluate", "run=/nowhere"], "/nowhere"),
        (["evaluate", "run={run}", "task.max_lenght=3"], "task.max_length"),
        (["evaluate", "run={run}", "model.embed_dim=32"], "does not fit"),
        (["evaluate", "run={run}", "task.vocab_size=11"], "same symbols"),
        (["evaluate", "run={run}", "task.max_length=400"], "max_length"),
        (["evaluate", "run={run}", "checkpoint=first"], "best or last"),
        (["predict", "run={run}"], "needs a sequence"),
        (["predict", "run={run}", "3 x 2"], "unknown token 'x'"),
        (["predict", "run={run}", "3 1", "figure=out.gif"], ".png"),
        (["predict", "run={run}", "3 1", "figure=/nowhere/out.png"], "/nowhere"),
        (["predict", "run={run}", "3 1", "figrue=out.png"], "figure"),
        (["predict", "run={run}", " ".join(["1"] * 400)], "position.max_length"),
        (["dashboard", "logdir=/nowhere"], "/nowhere"),
        (["dashboard", "port=abc"], "port"),
        (["bench"], "attention"),
        (["bench", "atention"], "did you mean 'attention'"),
        (["bench", "loop", "rounds=0"], "rounds"),
        (["bench", "recording", "pairs=1"], "pairs"),
        (["bench", "recording", "callbacks.attention_maps=null"], "compares with maps"),
        (["bench", "pruning", "pruner=hyperbnd"], "did you mean 'hyperband'"),
        (["bench", "attention", "csv=/nowhere/x.csv"], "/nowhere/x.csv"),
        (["bench", "attention", "csv=outputs"], "csv=outputs"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    words: list[str], said: str, lab: Lab, trained: Path, tmp_path: Path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outputs").mkdir()
    code, _, err = lab(*(word.format(run=trained) for word in words))
    assert code == 2
    assert said in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("file", ["config.yaml", "vocabulary.json", "checkpoints/best.ckpt"])
@pytest.mark.parametrize("content", [None, b"", b"\x00\xff{[", b"[1, 2]"])
def test_a_damaged_run_is_one_sentence(
    file: str, content: bytes | None, lab: Lab, trained: Path, tmp_path: Path
):
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    (run / file).unlink()
    if content is not None:
        (run / file).write_bytes(content)
    code, _, err = lab("predict", f"run={run}", "1 2")
    assert code == 2
    assert Path(file).name in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


def test_bench_loop_prints_a_ratio(lab: Lab):
    code, out, err = lab(
        "bench", "loop", "rounds=1", "steps=25", "task=copy", "model.embed_dim=16",
        "data.batch_size=3", "trainer.enable_progress_bar=false",
    )  # fmt: skip
    assert code == 0, err
    assert "median ratio" in out


@pytest.mark.parametrize("weights", ["off", "averaged", "per head"])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_bench_attention_times_a_case(weights: str, mode: str):
    from mha_lab.bench.timing import time_case

    row = time_case(weights, mode, True, (2, 3, 10, 5), seconds=0)
    assert row["ratio"] == pytest.approx(row["ours_ms"] / row["torch_ms"])
    assert row["ratio"] > 0


@pytest.mark.parametrize(("mode", "products"), [("train", 6), ("eval", 2)])
def test_bench_attention_times_each_kernel_once(mode: str, products: int):
    import torch
    from torch.profiler import profile

    from mha_lab.bench.kernels import kernels_step

    step = kernels_step((2, 3, 10, 5), mode, torch.device("cpu"))
    with profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        step()
    counts = {event.key: event.count for event in seen.key_averages()}
    assert counts["aten::mm"] == products
    assert counts["aten::scaled_dot_product_attention"] == 1
    backward = "aten::_scaled_dot_product_flash_attention_for_cpu_backward"
    assert counts.get(backward, 0) == (mode == "train")


def test_attention_written_by_hand_is_seen_too(lab: Lab, tmp_path: Path):
    run, picture = tmp_path / "run", tmp_path / "maps.png"
    words = ["task=copy", "attention={_target_:by_hand_variant.ByHand,_partial_:true}"]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="no attention")
        code, _, err = lab("train", *words, *TINY, "trainer.max_steps=5", f"hydra.run.dir={run}")
    assert code == 0, err
    assert read_attention(run)
    words = ["trust=by_hand_variant", "1 2 3", f"figure={picture}"]
    assert lab("predict", f"run={run}", *words)[0] == 0
    assert picture.stat().st_size > 0


def test_bench_tasks_prints_a_speed(lab: Lab):
    code, out, err = lab("bench", "tasks", "copy", "mqar", "sequences=11", "rounds=1")
    assert code == 0, err
    assert [line.split()[:2] for line in out.splitlines()[-2:]] == [
        ["copy", "1-10"],
        ["mqar", "16-32"],
    ]
    code, _, err = lab("bench", "tasks", "mqra")
    assert code == 2
    assert "did you mean 'mqar'?" in err
