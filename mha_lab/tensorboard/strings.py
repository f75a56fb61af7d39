"""From the two strings of a stored map to what of it travels to the tab's page."""

from __future__ import annotations

from typing import Any

from mha_lab.tensorboard.page_data import for_page, frame
from mha_lab.tensorboard.parameters import not_found
from mha_lab.tensorboard.series import Blob, Datum
from mha_lab.view.header import DamagedMapError, Header
from mha_lab.view.packed import unpack_codes


def sample_frame(strings: tuple[Blob, Blob], sample: int, datum: Datum, **more: Any) -> bytes:
    """One sample of a map.

    Raises:
        DamagedMapError: It cannot be read.
        BadRequestError: It has no such sample.
    """
    header = header_of(strings[0])
    codes = unpack_codes(header, _whole(strings[1]))
    if sample >= header.shape[0]:
        not_found(f"There is no sample {sample}; this map has {header.shape[0]}, counted from 0.")
    return frame(for_page(header, sample, datum) | more, codes[sample])


def header_of(blob: Blob) -> Header:
    """What the first of the strings says.

    Raises:
        DamagedMapError: It cannot be read.
    """
    return Header.from_json(_whole(blob))


def _whole(blob: Blob) -> bytes:
    if isinstance(blob, DamagedMapError):
        raise blob
    return blob
