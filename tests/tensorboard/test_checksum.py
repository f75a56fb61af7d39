"""TensorBoard's checksum, computed by a compiled library."""

import pytest
from stored_maps import make_map
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.tensorflow_stub import pywrap_tensorflow
from torch.utils.tensorboard import SummaryWriter

from mha_lab.tensorboard import checksum
from mha_lab.tensorboard.writer import write_attention


@pytest.fixture
def original():
    """TensorBoard as it comes; afterwards as it was before the test."""
    in_use = pywrap_tensorflow.crc32c
    checksum.use_compiled_checksum.cache_clear()

    def in_python(data):
        return pywrap_tensorflow.crc_finalize(
            pywrap_tensorflow.crc_update(pywrap_tensorflow.CRC_INIT, data)
        )

    pywrap_tensorflow.crc32c = in_python
    yield in_python
    pywrap_tensorflow.crc32c = in_use
    checksum.use_compiled_checksum.cache_clear()


def test_it_is_crc_32c(original):
    check_value = 0xE3069283  # of the CRC catalogue, CRC-32/ISCSI
    assert original(b"123456789") == check_value
    assert checksum.use_compiled_checksum()
    assert pywrap_tensorflow.crc32c is not original
    assert pywrap_tensorflow.crc32c(b"123456789") == check_value


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 4099])
def test_masked_as_in_an_event_file(original, size):
    data = bytes(i * 31 % 251 for i in range(size))
    expected = pywrap_tensorflow.masked_crc32c(data)
    checksum.use_compiled_checksum()
    assert pywrap_tensorflow.masked_crc32c(data) == expected


def test_another_checksum_is_left_alone(original):
    pywrap_tensorflow.crc32c = other = lambda data: 0
    assert not checksum.use_compiled_checksum()
    assert pywrap_tensorflow.crc32c is other


def test_what_is_written_passes_tensorboards_own_check(original, tmp_path):
    with SummaryWriter(tmp_path) as writer:
        write_attention(writer, [make_map()], 7)
    assert pywrap_tensorflow.crc32c is not original
    pywrap_tensorflow.crc32c = original
    [file] = tmp_path.glob("*tfevents*")
    assert len(list(RawEventFileLoader(str(file)).Load())) == 2  # the file's version, and the maps
