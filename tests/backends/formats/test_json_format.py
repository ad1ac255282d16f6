"""Polygraphy's JSON, checked against the real Polygraphy."""

import base64
import io
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import polygraphy.json as theirs
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp
from support.arrays import NAMES, NUMPY_NAMES, same, sample

from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.formats.json_arrays import StoredArray, as_array
from layerwise._tool.backends.formats.json_format import load, save
from layerwise._tool.backends.tensors import EXTENDED_NAMES, dtype_name, to_numpy


def read(path: Path) -> Any:
    return load(path, {})


@pytest.mark.parametrize("shape", [(2, 3), (), (0, 4), (5,)])
@pytest.mark.parametrize("name", NUMPY_NAMES)
def test_numpy_arrays_are_written_byte_for_byte_like_polygraphys(
    tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    feeds = [{"X": sample(name, shape)}]
    save(tmp_path / "ours.json", feeds)
    theirs.save_json(feeds, str(tmp_path / "theirs.json"))
    assert (tmp_path / "ours.json").read_bytes() == (tmp_path / "theirs.json").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_every_type_survives_a_round_trip(tmp_path: Path, name: str) -> None:
    array = sample(name)
    save(tmp_path / "a.json", {"x": array})
    stored = read(tmp_path / "a.json")["x"]
    assert (stored.dtype, stored.shape) == (name, array.shape)
    assert same(stored.array(), array)


@pytest.mark.parametrize("name", [*sorted(EXTENDED_NAMES), "string"])
def test_polygraphy_reads_types_unknown_to_it(tmp_path: Path, name: str) -> None:
    array = sample(name)
    save(tmp_path / "a.json", {"x": array})
    got = theirs.load_json(str(tmp_path / "a.json"))["x"]
    assert got.shape == array.shape
    if name == "string":
        assert got.tolist() == array.tolist()
    else:
        assert got.dtype.kind == "V" and got.tobytes() == array.tobytes()


@given(hnp.arrays(hnp.scalar_dtypes().filter(lambda d: dtype_name(d) in NUMPY_NAMES), hnp.array_shapes(min_dims=0)))
@settings(max_examples=20)
def test_any_array_is_exchanged_with_polygraphy(
    tmp_path_factory: pytest.TempPathFactory, array: np.ndarray[Any, Any]
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.json"
    save(path, [array])
    native = array.astype(array.dtype.newbyteorder("="))
    assert as_array(read(path)[0]).tobytes() == native.tobytes()
    theirs.save_json([array], str(path))
    assert np.array_equal(as_array(read(path)[0]).astype(array.dtype), array, equal_nan=array.dtype.kind in "fc")


def test_fortran_order_and_strided_arrays_round_trip(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    odd = [np.asfortranarray(array), array[:, ::2], array.T, array[::-1]]
    theirs.save_json(odd, str(tmp_path / "a.json"))
    for got, wanted in zip(read(tmp_path / "a.json"), odd, strict=True):
        assert np.array_equal(got.array(), wanted)
    save(tmp_path / "b.json", odd)
    for got, wanted in zip(theirs.load_json(str(tmp_path / "b.json")), odd, strict=True):
        assert np.array_equal(got, wanted)


def test_plain_values_are_written_as_polygraphy_writes_them(tmp_path: Path) -> None:
    value = {"a": [1, 2.5, None, True, 'é\x1b"', [], {}], "n": float("nan"), "i": float("-inf"), "t": (1, 2)}
    save(tmp_path / "a.json", value)
    assert (tmp_path / "a.json").read_text() == theirs.to_json(value)


def test_arrays_are_decoded_lazily(tmp_path: Path) -> None:
    big = np.random.default_rng(0).random(4 << 20)
    save(tmp_path / "a.json", {"x": big, "y": big[:10]})
    tracemalloc.start()
    stored = read(tmp_path / "a.json")
    after_load = tracemalloc.get_traced_memory()[1]
    assert np.array_equal(stored["x"].array(), big)
    after_read = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert after_load < 1 << 20
    assert after_read < 1.2 * big.nbytes


@pytest.mark.parametrize("indent", [None, 0, 1, 9])
def test_any_layout_of_the_json_is_read(tmp_path: Path, indent: int | None) -> None:
    feeds = [{"array": sample("float32"), "x y": sample("int64")}] * 3
    theirs.save_json(feeds, str(tmp_path / "a.json"))
    plain = json.loads((tmp_path / "a.json").read_text())
    (tmp_path / "a.json").write_text(json.dumps(plain, indent=indent, separators=(" ,\t", " :\r\n "), sort_keys=True))
    got = read(tmp_path / "a.json")
    assert isinstance(got[2]["array"], StoredArray)
    assert same(got[2]["array"].array(), feeds[2]["array"])


def test_unusual_spellings_of_key_and_value_are_read(tmp_path: Path) -> None:
    array = sample("float32")
    text = theirs.to_json({"x": array})
    value = json.loads(text)["x"]["array"]
    escaped = text.replace(value, value.replace("/", "\\/").replace("k", "\\u006b"))
    respelt, spaced = text.replace('"array"', '"\\u0061rray"'), text.replace('"array":', '"array"' + " " * 99 + ":")
    for odd in (escaped, respelt, spaced):
        (tmp_path / "a.json").write_text(odd)
        assert same(as_array(read(tmp_path / "a.json")["x"]), array)


def test_a_name_like_the_key_is_not_an_array(tmp_path: Path) -> None:
    value = {'foo"array": "': 'k05VTVBZ"array": "k05V', "array": "k05VTVBZ"}
    (tmp_path / "a.json").write_text(json.dumps(value))
    assert read(tmp_path / "a.json") == value


def test_small_arrays_across_scanner_windows_are_found(tmp_path: Path) -> None:
    feeds = [{f"{'n' * (number % 97)}{number}": np.full(number % 50, number)} for number in range(3000)]
    save(tmp_path / "a.json", feeds)
    for got, wanted in zip(read(tmp_path / "a.json"), feeds, strict=True):
        ((name, array),) = wanted.items()
        assert np.array_equal(got[name].array(), array)


def test_legacy_forms_are_read(tmp_path: Path) -> None:
    array = np.array([1.0, 2.0], np.float32)
    plain, archive = io.BytesIO(), io.BytesIO()
    np.save(plain, array)
    np.savez(archive, first=array)
    forms = [
        {"array": plain.getvalue().decode("latin-1"), "polygraphy_class": "ndarray"},
        {"array": base64.b64encode(archive.getvalue()).decode(), "polygraphy_class": "ndarray"},
        {"array": base64.b64encode(plain.getvalue()).decode(), "__polygraphy_encoded_ndarray": LEGACY},
        {"values": {"array": base64.b64encode(plain.getvalue()).decode(), "polygraphy_class": "ndarray"},
         "polygraphy_class": "LazyNumpyArray"},
    ]  # fmt: skip
    for form in forms:
        (tmp_path / "a.json").write_text(json.dumps([form]))
        assert np.array_equal(as_array(read(tmp_path / "a.json")[0]), array)


LEGACY = "polygraphy_serialized_json_type"


def test_polygraphys_void_type_stays_raw_bytes(tmp_path: Path) -> None:
    array = sample("bfloat16")
    theirs.save_json([array], str(tmp_path / "a.json"))
    got = read(tmp_path / "a.json")[0].array()
    assert got.dtype == np.dtype("V2") and got.view(to_numpy("bfloat16")).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not valid JSON"),
        ("[1, 2", "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"polygraphy_class": "Secret\\u001b"}', "unknown polygraphy_class"),
        ('{"polygraphy_class": "ndarray"}', "missing"),
        ('{"array": 5, "polygraphy_class": "ndarray"}', "not what it should be"),
        ('{"array": "!!!", "polygraphy_class": "ndarray"}', "npy"),
        ('{"array": "", "polygraphy_class": "ndarray"}', "npy"),
        ('{"tensor": "AAAA", "polygraphy_class": "Tensor"}', "torch"),
    ],
)
def test_bad_files_name_the_file_and_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(BadFile, match=reason) as caught:
        read(path)
    assert str(path) in str(caught.value) and "\x1b" not in str(caught.value)


def test_pickles_are_rejected(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], object), allow_pickle=True)
    text = base64.b64encode(stream.getvalue()).decode()
    (tmp_path / "a.json").write_text(json.dumps({"array": text, "polygraphy_class": "ndarray"}))
    with pytest.raises(BadFile, match="never unpickled"):
        read(tmp_path / "a.json")


def test_a_file_changed_during_reading_is_detected(tmp_path: Path) -> None:
    save(tmp_path / "a.json", [sample("float32")])
    stored = read(tmp_path / "a.json")[0]
    save(tmp_path / "a.json", [sample("float32", seed=1)])
    with pytest.raises(BadFile, match="changed"):
        stored.array()


def test_strings_that_npy_cannot_store_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(LayerwiseError, match="safetensors"):
        save(tmp_path / "a.json", [np.array(["a\0"], object)])
    assert not list(tmp_path.iterdir())


def test_arrays_are_not_read_from_a_file_that_changed_with_size_and_time_kept(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    save(path, {"a": np.full(99, 2, np.float32)})
    found = read(path)["a"]
    state = path.stat()
    other = tmp_path / "other.json"
    save(other, {"a": np.full(99, 3, np.float32)})
    while path.stat().st_ctime_ns == state.st_ctime_ns:  # until the clock has ticked
        path.write_bytes(other.read_bytes())
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)
    with pytest.raises(BadFile, match="has changed since it was opened"):
        found.array()
