"""Damaged and malicious ONNX files either open, or give an error that names them, within seconds."""

import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.cpu_time import cpu_seconds
from support.sample_models import DATA, FLOAT, if_model, mlp, model

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.file import ModelFile, load_model
from layerwise._tool.backends.model.wire import BYTES, Source, WireError, fields, put_bytes, put_int, put_varint
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.surgery.inspect.document import describe_model_json
from layerwise._tool.surgery.inspect.text import describe_model
from layerwise._tool.surgery.weights.statistics import weight_statistics

COUNT = 240
SECONDS = 5.0


def small_models() -> list[bytes]:
    """Real and made models of a few kilobytes with every kind of message in them."""
    names = ["test_sequence_model6", "test_strnorm_model_monday_casesensintive_lower", "test_single_relu_model"]
    made = [if_model(), mlp(width=16, layers=2)]
    loop = helper.make_graph(
        [helper.make_node("Add", ["state", "x"], ["next"]), helper.make_node("Identity", ["go"], ["again"])],
        "body",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in (("i", 7, []), ("go", 9, []), ("state", 1, [2]))],
        [helper.make_tensor_value_info(n, t, s) for n, t, s in (("again", 9, []), ("next", 1, [2]))],
    )
    node = helper.make_node("Loop", ["", "", "x"], ["y"], body=loop)
    value = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.ones((3, 4), np.int64)))
    made.append(model([value, node], ["x"], ["y"], shape=[2]))
    files = [DATA / "simple" / name / "model.onnx" for name in names]
    files += sorted((DATA / "pytorch-operator").glob("*/model.onnx"))[:6]
    return [*(m.SerializeToString() for m in made), *(f.read_bytes() for f in files)]


def flip_bits(data: bytes, pick: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(pick.choice([1, 1, 3, 30])):
        out[pick.randrange(len(out))] ^= 1 << pick.randrange(8)
    return bytes(out)


def truncate(data: bytes, pick: random.Random) -> bytes:
    return data[: pick.randrange(len(data))]


def grow_a_length(data: bytes, pick: random.Random) -> bytes:
    """Replace the length of some field, at any depth, by a huge one."""
    places: list[tuple[int, int]] = []

    def collect(start: int, end: int, depth: int) -> None:
        try:
            for f in fields(Source(data), start, end):
                if f.wire == BYTES:
                    places.append((f.at, f.start))
                    if depth < 6:
                        collect(f.start, f.end, depth + 1)
        except WireError:
            pass

    collect(0, len(data), 0)
    at, start = pick.choice(places)
    length = pick.choice([1 << 20, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 63) - 1, (1 << 64) - 1])
    return data[: at + 1] + put_varint(length) + data[start:]


def splice(data: bytes, pick: random.Random) -> bytes:
    a, b = sorted(pick.randrange(len(data)) for _ in range(2))
    return data[:a] + data[b:] + data[a:b] * pick.choice([0, 1, 50])


def scramble_values(data: bytes, pick: random.Random) -> bytes:
    """Change numbers, texts and shapes but keep the format valid."""
    proto = onnx.load_from_string(data)
    for tensor in proto.graph.initializer:
        if pick.random() < 0.5:
            tensor.data_type = pick.choice([0, 8, 16, 22, 23, 25, 27, 99])
        if pick.random() < 0.5:
            tensor.dims.append(pick.choice([-1, 0, 1 << 40, (1 << 63) - 1]))
    for node in proto.graph.node:
        for attribute in node.attribute:
            attribute.type = pick.randrange(15)
        node.input.extend(["", "missing", "\x1b[31m", "x" * 10_000][: pick.randrange(5)])
        node.name = pick.choice(["", "\n", "\u202e", "n" * 10_000])
        node.domain = pick.choice(["", "ai.onnx", "no.such.domain"])
    return proto.SerializeToString()


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    flip_bits,
    truncate,
    grow_a_length,
    splice,
    scramble_values,
]


def use_everything(path: Path, folder: Path) -> None:
    """Do what the app and the command line do with a model, except running it."""
    with ModelFile(path) as file:
        index = build_index(file, folder)
        for node in range(index.n_nodes):
            index.attributes(node), index.parents(node), index.node_inputs(node)
        index.search("a !b op:c")
        for show in ((), ("layers", "attrs", "weights")):
            assert all("\x1b" not in line for line in describe_model(file, show))
            describe_model_json(file, show)
        for name in file.weights():
            try:
                weight_statistics(file, name)
            except LayerwiseError as error:
                assert path.name in str(error)
        file.structure()
    load_model(path)


def outcome(path: Path, folder: Path) -> str:
    """Return "opened" or "refused"; anything else that happens is a failure of the test."""
    started = cpu_seconds()
    try:
        use_everything(path, folder)
        result = "opened"
    except LayerwiseError as error:
        assert path.name in str(error)
        assert len(str(error)) < 2000
        result = "refused"
    assert cpu_seconds() - started < SECONDS
    return result


def test_damaged_files_open_or_are_rejected(tmp_path: Path) -> None:
    pick, samples, results = random.Random(20_261), small_models(), []
    for i in range(COUNT):
        mutation = MUTATIONS[i % len(MUTATIONS)]
        path = tmp_path / f"damaged_{i}_{mutation.__name__}.onnx"
        path.write_bytes(mutation(pick.choice(samples), pick))
        try:
            results.append(outcome(path, tmp_path / "index"))
        except Exception as error:
            raise AssertionError(f"{path.name}: {type(error).__name__}: {error}") from error
        path.unlink()
    assert results.count("refused") > COUNT / 5
    assert results.count("opened") > COUNT / 10


def nested(levels: int) -> bytes:
    """A model whose graph holds a node whose attribute holds a graph, and so on."""
    graph = b""
    for _ in range(levels):
        graph = put_bytes(
            1, put_bytes(4, b"If") + put_bytes(5, put_bytes(1, b"a") + put_int(20, 5) + put_bytes(6, graph))
        )
    return put_int(1, 8) + put_bytes(7, graph)


def nested_type(levels: int) -> bytes:
    """A model with an input that is a sequence of sequences of …"""
    kind = b""
    for _ in range(levels):
        kind = put_bytes(4, put_bytes(1, kind))
    return put_int(1, 8) + put_bytes(7, put_bytes(11, put_bytes(1, b"x") + put_bytes(2, kind)))


def initializer(**values: object) -> bytes:
    tensor = onnx.TensorProto(name="w", data_type=FLOAT, **values)  # type: ignore[arg-type]
    return model([], [], [], [tensor]).SerializeToString()


CRAFTED = {
    "nested": nested(3000),
    "nested_40": nested(40),
    "nested_in_a_small_node": nested(60),
    "type": nested_type(2000),
    "type_90": nested_type(90),
    "dims": initializer(dims=[1 << 62] * 60, raw_data=b"abcd"),
    "many_dims": initializer(dims=[1] * 100_000, raw_data=b"abcd"),
    "no_element": initializer(dims=[0, 1 << 62], raw_data=b""),
    "lengths": b"\x3a" + b"\xff" * 9 + b"\x01" + b"a" * 50,
    "empty_messages": put_int(1, 8) + put_bytes(7, put_bytes(1, b"") * 3000 + put_bytes(5, b"") * 3000),
    "two_graphs": put_bytes(7, put_bytes(2, b"a")) + put_bytes(7, put_bytes(2, b"b")) + put_int(1, 8),
    "floats": put_bytes(7, put_bytes(1, put_bytes(5, put_bytes(7, struct.pack("<f", 1) * 50_000 + b"odd")))),
    "ints": put_bytes(7, put_bytes(1, put_bytes(5, put_bytes(8, b"\x80" * 50_000)))),
    "text_number": put_bytes(7, put_bytes(1, put_bytes(4, b"\xff\xfe"))),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_malicious_files_open_or_are_rejected(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(CRAFTED[name])
    outcome(path, tmp_path / "index")


def test_false_external_references_open_or_are_rejected(tmp_path: Path) -> None:
    places = [
        {"location": "m.onnx", "offset": "0", "length": "4"},
        {"location": "m.onnx", "offset": "5", "length": str(1 << 62)},
        {"location": "x" * 5000},
        {"location": "\u202egpj.exe"},
        {},
    ]
    for place in places:
        proto = model([], [], [], [])
        tensor = proto.graph.initializer.add(name="w", data_type=FLOAT, dims=[1], data_location=1)
        for key, value in place.items():
            tensor.external_data.add(key=key, value=value)
        path = tmp_path / "m.onnx"
        path.write_bytes(proto.SerializeToString())
        assert outcome(path, tmp_path / "index") == ("opened" if place == places[0] else "refused")
