"""What the maps of a report say that was read and written."""

import numpy as np
import pytest

from mha_lab.reporting.best_maps import BestMap
from mha_lab.reporting.map_example import in_and_out, rows

SOURCE = ["7", "3", "5", "<eos>"]
TARGET = ["<bos>", "3", "5", "7"]
JOINED = ["7", "3", "5", "<sep>", "3", "5", "7"]


def one(query: list[str] | None, key: list[str] | None) -> BestMap:
    return BestMap("a", "head 0", np.zeros((1, 1), np.float32), query, key)


@pytest.mark.parametrize(
    ("maps", "said"),
    [
        ({"self": one(SOURCE, SOURCE), "cross": one(TARGET, SOURCE)}, "7 3 5 → 3 5 7"),
        ({"masked": one(JOINED, JOINED)}, "7 3 5 → 3 5 7"),
        ({"self": one(SOURCE, SOURCE)}, "7 3 5"),
        ({"masked": one(["7", "3"], ["7", "3"])}, "7 3"),
        ({"self": one(None, None)}, ""),
        ({}, ""),
    ],
    ids=["encoder_decoder", "decoder", "encoder", "no_output", "no_tokens", "no_maps"],
)
def test_above_stands_what_was_read_and_what_was_to_be_written(maps, said):
    assert in_and_out(maps) == said


def test_a_row_names_the_token_that_it_is_to_write():
    assert rows(TARGET) == ["<bos> → 3", "3 → 5", "5 → 7", "7 → <eos>"]
    assert rows(JOINED) == ["7", "3", "5", "<sep> → 3", "3 → 5", "5 → 7", "7 → <eos>"]
    assert rows(SOURCE) == SOURCE
    assert rows(["<bos> → 3", "3 → 4"]) == ["<bos> → 3", "3 → 4"], "it is said already"
    assert rows([]) == []
