"""A long run of a large model stays small, and every step of it is there."""

import pytest
from attention_app import App
from long_run import HEADS, LAYERS, VALIDATIONS, bytes_in, train

from mha_lab.tensorboard.event_files import find_event_files, read_events
from mha_lab.tensorboard.reader import read_attention


@pytest.mark.slow
def test_a_long_run_of_a_large_model(tmp_path):
    train(tmp_path)
    assert bytes_in(tmp_path) < 100_000_000
    app = App(tmp_path)
    maps = app.get("/maps", run="long").json["maps"]
    assert len(maps) == LAYERS
    for one in maps:
        assert one["steps"] == list(range(1, VALIDATIONS + 1))
    assert read_attention(tmp_path)[-1].weights.shape == (1, HEADS, 64, 64)


def test_an_event_at_the_defaults(tmp_path):
    train(tmp_path, validations=1)
    files = [file for _, file in find_event_files(tmp_path)]
    sizes = [event.ByteSize() for file in files for event in read_events(file)]
    assert 128 * 1024 < max(sizes) <= 256 * 1024  # as few events as can be
