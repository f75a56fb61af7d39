"""Fixed sets in the cache: right, whole, and no trouble when they are not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from mha_lab.tasks import cache
from mha_lab.tasks.batch import Batch
from mha_lab.tasks.copy import copy_task
from mha_lab.tasks.fixed_sets import FixedSets
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sort import sort_task


def load(folder: Path, **arguments: int) -> Batch:
    return sort_task(**arguments).fixed_split("test", 53, cache_dir=folder)


def only_folder(cache_dir: Path) -> Path:
    (folder,) = cache_dir.iterdir()  # nothing half-written is left beside it
    return folder


def same(one: Batch, other: Batch) -> bool:
    return torch.equal(one.source, other.source) and torch.equal(one.target, other.target)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names the splits that were built, not read."""
    built = []
    sample = FixedSets.make

    def counted(self, split, size):
        built.append(split)
        return sample(self, split, size)

    monkeypatch.setattr(FixedSets, "make", counted)
    return built


def test_second_time_is_read_and_equal(tmp_path: Path, builds: list[str]) -> None:
    first = load(tmp_path)
    second = load(tmp_path)
    assert builds == ["test"]
    assert same(first, second)
    assert same(first, sort_task().fixed_split("test", 53))


def test_folder_is_a_hugging_face_dataset(tmp_path: Path) -> None:
    from datasets import load_from_disk

    batch = load(tmp_path)
    dataset = load_from_disk(str(only_folder(tmp_path)))
    assert dataset.column_names == ["source", "target"]
    row = dataset[7]
    assert row["source"] == [id_ for id_ in batch.source[7].tolist() if id_]
    assert row["target"] == [id_ for id_ in batch.target[7].tolist() if id_]


def test_every_argument_has_its_own_folder(tmp_path: Path) -> None:
    task = copy_task()
    task.fixed_split("test", 5, cache_dir=tmp_path)
    task.fixed_split("test", 7, cache_dir=tmp_path)
    task.fixed_split("validation", 5, cache_dir=tmp_path)
    sort_task().fixed_split("test", 5, cache_dir=tmp_path)
    for change in ({"min_length": 2}, {"max_length": 11}, {"vocab_size": 11}):
        copy_task(**change).fixed_split("test", 5, cache_dir=tmp_path)
    assert len(list(tmp_path.iterdir())) == 7


@pytest.mark.parametrize("damage", ["empty", "cut", "noise", "no file", "a file", "columns"])
def test_damaged_folder_is_built_again(tmp_path: Path, builds: list[str], damage: str) -> None:
    first = load(tmp_path)
    folder = only_folder(tmp_path)
    (arrow,) = folder.glob("*.arrow")
    content = arrow.read_bytes()
    if damage == "empty":
        arrow.write_bytes(b"")
    elif damage == "cut":
        arrow.write_bytes(content[: len(content) // 2])
    elif damage == "noise":
        arrow.write_bytes(bytes(range(256)) * 17)
    elif damage == "no file":
        arrow.unlink()
    elif damage == "a file":
        shutil.rmtree(folder)
        folder.write_text("not a folder")
    else:
        shutil.copy(other_columns(tmp_path), arrow)
    assert same(load(tmp_path), first)
    assert builds == ["test", "test"]
    assert same(load(tmp_path), first)
    assert builds == ["test", "test"]


def other_columns(tmp_path: Path) -> Path:
    from datasets import Dataset

    elsewhere = tmp_path.with_name("elsewhere")
    Dataset.from_dict({"text": ["a"]}).save_to_disk(elsewhere)
    return next(elsewhere.glob("*.arrow"))


@pytest.mark.parametrize("kept_rows", [3, 52])
def test_a_set_that_lacks_rows_is_built_again(tmp_path: Path, kept_rows: int) -> None:
    import pyarrow as pa

    first = load(tmp_path)
    (arrow,) = only_folder(tmp_path).glob("*.arrow")
    with pa.OSFile(str(arrow)) as stream:  # read, not mapped: it is written over
        table = pa.ipc.open_stream(stream).read_all().slice(0, kept_rows)
    with pa.OSFile(str(arrow), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert same(load(tmp_path), first)


def test_rows_in_another_order_are_built_again(tmp_path: Path) -> None:
    import pyarrow as pa

    first = load(tmp_path)
    (arrow,) = only_folder(tmp_path).glob("*.arrow")
    with pa.OSFile(str(arrow)) as stream:  # read, not mapped: it is written over
        table = pa.ipc.open_stream(stream).read_all().take(list(range(52, -1, -1)))
    with pa.OSFile(str(arrow), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert same(load(tmp_path), first)


@pytest.mark.parametrize("position", range(40, 2400, 211))
def test_any_flipped_byte_gives_the_right_set(tmp_path: Path, position: int) -> None:
    first = load(tmp_path)
    (arrow,) = only_folder(tmp_path).glob("*.arrow")
    content = bytearray(arrow.read_bytes())
    content[position % len(content)] ^= 0x55
    arrow.write_bytes(content)
    assert same(load(tmp_path), first)


def test_a_changed_rule_makes_the_kept_targets_void(tmp_path: Path) -> None:
    def reverse(source: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return source.flip(1).sort(dim=1, descending=True, stable=True).values

    sizes = {"min_length": 1, "max_length": 5, "vocab_size": 7}
    one = GeneratedTask("mine", lambda source, lengths: source, **sizes)
    two = GeneratedTask("mine", reverse, **sizes)
    one.fixed_split("test", 11, cache_dir=tmp_path)
    got = two.fixed_split("test", 11, cache_dir=tmp_path)
    assert same(got, two.fixed_split("test", 11))


def test_another_process_that_was_first_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    sample = FixedSets.make

    def overtaken(self, split, size):
        monkeypatch.setattr(FixedSets, "make", sample)
        load(tmp_path)  # begins later and ends earlier
        return sample(self, split, size)

    monkeypatch.setattr(FixedSets, "make", overtaken)
    first = load(tmp_path)
    assert same(load(tmp_path), first)
    assert only_folder(tmp_path).is_dir()
    assert not recwarn.list


@pytest.mark.slow
def test_processes_at_once_do_not_clash(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from mha_lab.tasks.copy import copy_task;"
        "b = copy_task().fixed_split('train', 2003, cache_dir=Path(sys.argv[1]));"
        "print(int(b.source.sum()), len(b.source))"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    outputs = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], outputs
    assert len({out for out, _ in outputs}) == 1
    assert only_folder(tmp_path).is_dir()


def test_cache_that_cannot_be_written_costs_a_warning(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.warns(UserWarning, match=r"cannot be written .* data\.cache_dir or MHA_LAB_CACHE"):
        batch = load(blocked / "cache")
    assert same(batch, sort_task().fixed_split("test", 53))


def test_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MHA_LAB_CACHE", "~/there")
    assert cache.default_cache_dir() == Path.home() / "there"
    monkeypatch.delenv("MHA_LAB_CACHE")
    assert cache.default_cache_dir() == Path.home() / ".cache" / "mha_lab"


@pytest.mark.parametrize("disabled", [True, False])
def test_progress_bars_of_datasets_stay_as_they_were(disabled: bool) -> None:
    from datasets.utils import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    try:
        (disable_progress_bars if disabled else enable_progress_bars)()
        with cache.quiet_progress_bars():
            assert are_progress_bars_disabled()
        assert are_progress_bars_disabled() == disabled
    finally:
        enable_progress_bars()
