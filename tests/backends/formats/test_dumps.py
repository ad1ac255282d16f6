"""safetensors dumps, checked against the real safetensors library."""

from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from support.arrays import NAMES, same, sample

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.formats.dumps import DumpReader, DumpWriter
from layerwise._tool.backends.tensors import EXTENDED_NAMES

SHAPES = [(2, 3), (), (0, 4), (7,)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_every_type_round_trips(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    with DumpWriter(tmp_path / "a.safetensors") as writer:
        writer.add("first", np.array([True]))  # what follows is not aligned
        writer.add("x", sample(name, shape))
    reader = DumpReader(tmp_path / "a.safetensors")
    assert reader.names() == ["first", "x"]
    assert (reader.dtype("x"), reader.shape("x")) == (name, shape)
    assert same(np.asarray(reader.array("x")), sample(name, shape))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in EXTENDED_NAMES - {"bfloat16"}])
def test_safetensors_reads_our_dumps(tmp_path: Path, name: str) -> None:
    with DumpWriter(tmp_path / "a.safetensors") as writer:
        writer.metadata["who"] = "us"
        writer.add("x", sample(name))
        writer.add("b", np.array([True, False]))
    with safetensors.safe_open(tmp_path / "a.safetensors", "numpy") as opened:
        assert opened.metadata()["who"] == "us"
        assert set(opened.keys()) == {"x", "b"}
        if name not in ("string", "complex128", "bfloat16"):
            assert same(opened.get_tensor("x"), sample(name))


def test_our_reader_reads_safetensors_files(tmp_path: Path) -> None:
    arrays = {name: sample(name) for name in ("float32", "int64", "bool", "float16", "uint8")}
    safetensors.numpy.save_file(arrays, tmp_path / "a.safetensors", {"k": "v"})
    reader = DumpReader(tmp_path / "a.safetensors")
    assert reader.metadata == {"k": "v"}
    assert all(same(np.asarray(reader.array(name)), array) for name, array in arrays.items())


def test_arrays_are_mapped_and_read_only(tmp_path: Path) -> None:
    with DumpWriter(tmp_path / "a.safetensors") as writer:
        writer.add("x", np.arange(1000.0))
    array = DumpReader(tmp_path / "a.safetensors").array("x")
    assert not array.flags.owndata and not array.flags.writeable


def test_views_and_big_endian_arrays_round_trip(tmp_path: Path) -> None:
    array = np.arange(24, dtype=">f4").reshape(2, 3, 4)
    with DumpWriter(tmp_path / "a.safetensors") as writer:
        writer.add("t", array.T)
        writer.add("s", array[:, ::2])
    reader = DumpReader(tmp_path / "a.safetensors")
    assert np.array_equal(reader.array("t"), array.T) and np.array_equal(reader.array("s"), array[:, ::2])


def test_a_failed_dump_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="twice"), DumpWriter(tmp_path / "a.safetensors") as writer:
        writer.add("x", np.zeros(3))
        writer.add("x", np.zeros(3))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,
        b"\x02\0\0\0\0\0\0\0[]",
        b"\x02\0\0\0\0\0\0\0{",
        b'\x2e\0\0\0\0\0\0\0{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}',
        b'\x3a\0\0\0\0\0\0\0{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}    1234',
        b'\x3a\0\0\0\0\0\0\0{"a":{"dtype":"F32","shape":[-1],"data_offsets":[4,0]}}   1234',
    ],
)
def test_bad_files_name_the_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=r"bad\.safetensors"):
        DumpReader(path)
