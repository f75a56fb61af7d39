"""``train -m`` through Hydra's launchers, as docs/sweeps.md writes the commands."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from commands import PATIENCE, SMALL, finish, start

from mha_lab.training.run_folder import read_summary

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3 * PATIENCE)]


def needs(plugin: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        find_spec(f"hydra_plugins.{plugin}") is None, reason=f"needs the extra with {plugin}"
    )


def train(tmp_path: Path, *launcher: str) -> str:
    """A multirun of two seeds; checks its runs and table, and gives what it printed."""
    log, folder = tmp_path / "log", tmp_path / "multirun"
    words = [*SMALL, "model.num_heads=2", "seed=3,5", f"hydra.sweep.dir={folder}", *launcher]
    finish(start("train", "-m", *words, log=log), log)
    summaries = [read_summary(folder / number) for number in ("0_seed3", "1_seed5")]
    assert [summary["seed"] for summary in summaries] == [3, 5]
    assert [summary["steps"] for summary in summaries] == [6, 6]
    assert (folder / "summary.csv").read_text().count("finished") == 2
    return log.read_text()


def test_basic(tmp_path: Path):
    train(tmp_path)


@needs("hydra_joblib_launcher")
def test_joblib(tmp_path: Path):
    train(tmp_path, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")


@needs("hydra_submitit_launcher")
def test_submitit_on_this_machine(tmp_path: Path):
    train(tmp_path, "hydra/launcher=submitit_local", "hydra.launcher.timeout_min=30")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A Ray cluster of two nodes with one core each; gives its address."""
    if find_spec("ray") is None:
        pytest.skip("needs the extra mha_lab[ray]")
    ray = Path(sys.executable).parent / "ray"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "MHA_LAB_CACHE": str(tmp_path / "cache"),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    shared = ["--num-cpus=1", "--object-store-memory=80000000", "--block"]
    port = address.partition(":")[2]
    head = ["--head", f"--port={port}", "--include-dashboard=false", "--node-ip-address=127.0.0.1"]
    nodes = []
    for words in (head, [f"--address={address}"]):
        with (tmp_path / "ray.log").open("ab") as stream:
            nodes.append(
                subprocess.Popen(
                    [str(ray), "start", *words, *shared],
                    stdout=stream, stderr=stream, env=environment, start_new_session=True,
                )
            )  # fmt: skip
        if len(nodes) == 1:
            _wait_for_port(int(port), nodes[0], tmp_path / "ray.log")
    yield address
    for node in reversed(nodes):
        node.terminate()
        node.wait(60)


def _wait_for_port(port: int, node: subprocess.Popen[bytes], log: Path) -> None:
    import time

    for _ in range(int(PATIENCE)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert node.poll() is None, log.read_text()[-3000:]
        time.sleep(1)
    raise AssertionError(log.read_text()[-3000:])


@needs("hydra_ray_launcher")
def test_ray_on_a_cluster_of_two(tmp_path: Path, cluster: str):
    told = train(
        tmp_path,
        "hydra/launcher=ray",
        f"hydra.launcher.ray.init.address={cluster}",
        "+hydra.launcher.ray.init.object_store_memory=null",
        "+hydra.launcher.ray.remote.num_cpus=1",
    )
    assert told.startswith("2 runs")
    assert "(_run_job pid=" in told, "Ray ran them"
