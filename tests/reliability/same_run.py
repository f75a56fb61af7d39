"""Whether two runs are one and the same: weights, metrics, events, as TensorBoard shows them.

What tells the time differs, and is left out; that it is there is compared.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tensorboard import context
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.data import server_ingester
from tensorboard.util import grpc_util

from mha_lab.tensorboard.event_files import find_event_files, read_events

TIMES = (
    "train/sequences_per_second", "wall_seconds", "train_seconds", "_hparams_/",
    "whole_run/wall_seconds", "whole_run/train_seconds",
)  # fmt: skip
ALL = 10**9
Steps = dict[tuple[str, str], list[int]]  # of each kind and tag


def differences(expected: Path, found: Path, *, loaders: bool = True) -> list[str]:
    """What is not the same, in words; empty for the same run.

    Args:
        expected: the folder of a run.
        found: the folder of another.
        loaders: read the events as TensorBoard's two loaders do, too.
    """
    compared = {
        "last.ckpt": _checkpoint(expected, "last") == _checkpoint(found, "last"),
        "best.ckpt": _checkpoint(expected, "best") == _checkpoint(found, "best"),
        "summary.json": _summary(expected) == _summary(found),
        "accuracy_by_length.csv": _text(expected) == _text(found),
    }
    wrong = [f"{name} differs" for name, same in compared.items() if not same]
    wrong += _unlike("metrics.csv", metrics(expected), metrics(found))
    wrong += _unlike("events", Counter(_events(expected)), Counter(_events(found)))
    if loaders:
        wrong += _unlike("Python loader", python_loader(expected), python_loader(found))
        wrong += _unlike("fast loader", fast_loader(expected), fast_loader(found))
    return wrong


def metrics(run: Path) -> dict[int, dict[str, str]]:
    """The cells of ``metrics.csv``, by step."""
    with (run / "metrics.csv").open(newline="") as stream:
        rows = [{k: v for k, v in row.items() if v} for row in csv.DictReader(stream)]
    steps = [int(row["step"]) for row in rows]
    assert len(set(steps)) == len(steps), f"{run}: a step is twice in metrics.csv"
    return {
        step: {k: "" if k.startswith(TIMES) else v for k, v in row.items()}
        for step, row in zip(steps, rows, strict=True)
    }


def python_loader(run: Path) -> Steps:
    """What TensorBoard's loader in Python shows."""
    loader = EventAccumulator(str(run), size_guidance=dict.fromkeys(
        ("scalars", "images", "tensors", "histograms", "compressedHistograms"), 0
    ))  # fmt: skip
    loader.Reload()
    read = {"scalars": loader.Scalars, "images": loader.Images, "tensors": loader.Tensors}
    return {
        (kind, tag): [event.step for event in get(tag)]
        for kind, get in read.items()
        for tag in loader.Tags()[kind]
    }


def fast_loader(run: Path) -> Steps:
    """What TensorBoard's fast loader shows; empty where its server is not installed."""
    try:
        binary = server_ingester.get_server_binary()
    except server_ingester.NoDataServerError:
        return {}
    server = server_ingester.SubprocessServerDataIngester(
        binary,
        str(run),
        reload_interval=0,
        channel_creds_type=grpc_util.ChannelCredsType.LOCAL,
        samples_per_plugin={"scalars": 0, "images": 0, "text": 0, "mha_lab_attention": 0},
    )
    server.start()
    try:
        return dict(_provided(server.data_provider))
    finally:
        server._stdin_handle.close()  # it dies after its input


def _provided(provider: Any) -> Iterator[tuple[tuple[str, str], list[int]]]:
    calls = {
        "scalars": (provider.read_scalars, ("scalars",)),
        "tensors": (provider.read_tensors, ("text",)),
        "blobs": (provider.read_blob_sequences, ("images", "mha_lab_attention")),
    }
    for kind, (read, plugins) in calls.items():
        for plugin in plugins:
            found = read(
                context.RequestContext(), experiment_id="", plugin_name=plugin, downsample=ALL
            )
            for tags in found.values():
                for tag, data in tags.items():
                    yield (f"{kind} of {plugin}", tag), [datum.step for datum in data]


def _checkpoint(run: Path, name: str) -> dict[str, bytes] | None:
    """Every tensor of the weights, of the optimizer and of the random state, as bytes."""
    file = run / "checkpoints" / f"{name}.ckpt"
    if not file.exists():
        return None
    content = torch.load(file, weights_only=True)
    kept = {key: content[key] for key in ("state_dict", "optimizer_states", "random_state")}
    return dict(_tensors(kept, "")) | {"step": str(content["global_step"]).encode()}


def _tensors(tree: Any, path: str) -> Iterator[tuple[str, bytes]]:
    if isinstance(tree, torch.Tensor):
        yield path, tree.numpy().tobytes()
    elif isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from _tensors(value, f"{path}/{key}")


def _summary(run: Path) -> dict[str, Any]:
    content = json.loads((run / "summary.json").read_text())
    return {key: value for key, value in content.items() if key not in TIMES}


def _text(run: Path) -> str:
    return (run / "accuracy_by_length.csv").read_text()


def _events(run: Path) -> Iterator[tuple[str, int, bytes]]:
    for _, file in find_event_files(run):
        for event in read_events(file):
            for value in event.summary.value:
                is_time = value.tag.startswith(TIMES)
                yield value.tag, event.step, b"" if is_time else value.SerializeToString()


def _unlike(what: str, expected: Any, found: Any) -> list[str]:
    """Name the first keys at which two mappings differ."""
    keys = [key for key in {**expected, **found} if expected.get(key) != found.get(key)]
    return [
        f"{what}: {str(key)[:90]}: {str(expected.get(key))[:90]} became {str(found.get(key))[:90]}"
        for key in keys[:4]
    ]
