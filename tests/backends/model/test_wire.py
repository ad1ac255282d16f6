import contextlib
import os
from pathlib import Path

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerwise._tool.backends.model.wire import (
    BYTES,
    VARINT,
    Field,
    Source,
    WireError,
    fields,
    put_bytes,
    put_int,
    put_varint,
    signed,
    varint,
    varints,
)

MESSAGE = put_int(1, 8) + put_bytes(2, b"producer") + put_bytes(7, b"\0" * 5000) + put_int(5, 300)


def read(data: bytes) -> list[tuple[int, int, int]]:
    return [(f.number, f.wire, f.value or f.end - f.start) for f in fields(Source(data), 0, len(data))]


@given(st.integers(0, (1 << 64) - 1))
def test_numbers_round_trip(value: int) -> None:
    assert varint(put_varint(value), 0, 10) == (value, len(put_varint(value)))


def test_negative_numbers_are_ten_bytes_long() -> None:
    tensor = onnx.TensorProto(dims=[-1, 5])
    assert varints(b"".join(put_varint(v & (1 << 64) - 1) for v in (-1, 5))) == [-1, 5]
    assert [signed(f.value) for f in fields(Source(tensor.SerializeToString()), 0, 13)] == [-1, 5]


@pytest.mark.parametrize("window", [32, 64, 4096])
def test_a_file_reads_like_its_bytes_with_any_window(tmp_path: Path, window: int) -> None:
    path = tmp_path / "message"
    path.write_bytes(MESSAGE)
    fd = os.open(path, os.O_RDONLY)
    try:
        source = Source(fd, window=window)
        found = [(f.number, f.wire, f.value or f.end - f.start) for f in fields(source, 0, source.size)]
        assert source.read(2, 12) == MESSAGE[2:12]
    finally:
        os.close(fd)
    assert found == read(MESSAGE) == [(1, VARINT, 8), (2, BYTES, 8), (7, BYTES, 5000), (5, VARINT, 300)]


@given(st.integers(0, len(MESSAGE) - 1))
def test_a_truncated_message_is_rejected_unless_cut_between_fields(length: int) -> None:
    with contextlib.suppress(WireError):
        assert read(MESSAGE[:length]) == read(MESSAGE)[: len(read(MESSAGE[:length]))]


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x05abc",  # length beyond the end
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # length of 2**64 - 1
        b"\x08" + b"\xff" * 11,  # number without end
        b"\x08\x80",  # number cut off
        b"\x02\x01a",  # field 0
        b"\x0b",  # group
        b"\x0f\x00",  # wire type 7
        b"\x0d\x00\x00",  # fixed32 cut off
        b"\x80",  # tag cut off
    ],
)
def test_invalid_messages_are_rejected(data: bytes) -> None:
    with pytest.raises(WireError):
        read(data)


@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_rejected(data: bytes) -> None:
    try:
        found = list(fields(Source(data), 0, len(data)))
    except WireError:
        return
    assert all(0 <= f.at < f.start <= f.end <= len(data) for f in found)


@given(st.data())
def test_nothing_behind_a_message_is_read(data: st.DataObject) -> None:
    whole = data.draw(st.one_of(st.binary(max_size=60), st.just(MESSAGE[:60])))
    end = data.draw(st.integers(0, len(whole)))
    assert _read_until(whole, end) == _read_until(whole[:end], end)


def _read_until(data: bytes, end: int) -> list[Field]:
    found = []
    with contextlib.suppress(WireError):
        for each in fields(Source(data), 0, end):
            found.append(each)
    return found


def test_a_shrinking_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "message"
    path.write_bytes(MESSAGE)
    fd = os.open(path, os.O_RDWR)
    try:
        source = Source(fd)
        os.ftruncate(fd, 3000)
        with pytest.raises(WireError):
            list(fields(source, 0, source.size))
            source.read(0, source.size)
    finally:
        os.close(fd)
