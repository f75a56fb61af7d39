import torch

from mha_lab.tasks.batch import Batch, end_rows, pad_rows, trim


def test_pad_rows() -> None:
    padded = pad_rows([[5, 6, 7], [], [8]])
    assert padded.tolist() == [[5, 6, 7], [0, 0, 0], [8, 0, 0]]
    assert padded.dtype == torch.int64
    assert pad_rows([]).shape == (0, 0)
    assert pad_rows([[], []]).shape == (2, 0)


def test_end_rows_puts_eos_after_the_last_token() -> None:
    ended = end_rows(torch.tensor([[5, 6, 7], [0, 0, 0], [8, 0, 0]]))
    assert ended.tolist() == [[5, 6, 7, 2], [2, 0, 0, 0], [8, 2, 0, 0]]


def test_trim_drops_only_columns_of_padding() -> None:
    batch = Batch(torch.tensor([[5, 2, 0, 0], [5, 5, 2, 0]]), torch.tensor([[2, 0], [2, 0]]))
    source, target = trim(batch)
    assert source.tolist() == [[5, 2, 0], [5, 5, 2]]
    assert target.tolist() == [[2], [2]]
