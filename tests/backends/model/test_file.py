import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.sample_models import DATA, FLOAT, if_model, mlp, model

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model.file import ModelFile, load_model

FOLDER_KEY = "session.model_external_initializers_file_folder_path"


def run(data: bytes | str, feed: dict[str, np.ndarray], folder: Path | None = None) -> list[np.ndarray]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    if folder:
        options.add_session_config_entry(FOLDER_KEY, str(folder))
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feed)


def assert_runs_alike(file: ModelFile, whole: onnx.ModelProto, feed: dict[str, np.ndarray]) -> None:
    expected = run(whole.SerializeToString(), feed)
    for a, b in zip(run(file.structure_bytes(), feed, file.folder), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def external_refs(structure: onnx.ModelProto) -> dict[str, dict[str, str]]:
    tensors = structure.graph.initializer
    return {t.name: {e.key: e.value for e in t.external_data} for t in tensors if t.data_location == t.EXTERNAL}


def test_large_weights_are_references_into_the_model_itself(tmp_path: Path) -> None:
    whole, path = mlp(), tmp_path / "m.onnx"
    onnx.save(whole, path)
    file = ModelFile(path)
    structure = file.structure()
    assert set(external_refs(structure)) == {"w0", "w1", "w2"}
    assert all(ref["location"] == "m.onnx" for ref in external_refs(structure).values())
    assert len(file.structure_bytes()) < 5000 < path.stat().st_size
    assert_runs_alike(file, whole, {"x": np.ones((2, 64), np.float32)})
    for tensor in whole.graph.initializer:
        ref = file.weights()[tensor.name]
        assert path.read_bytes()[ref.offset : ref.offset + ref.nbytes] == tensor.raw_data
        np.testing.assert_array_equal(file.array(tensor.name), numpy_helper.to_array(tensor))
        assert not file.array(tensor.name).flags.writeable
    assert load_model(path) == whole == load_model(path.read_bytes())


def test_weights_of_bodies_and_constants_are_external_too(tmp_path: Path) -> None:
    whole, path = if_model(), tmp_path / "m.onnx"
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.ones(512, np.float32)))
    whole.graph.node.extend([constant, helper.make_node("Add", ["y", "c"], ["z"])])
    whole.graph.output.add().CopyFrom(helper.make_tensor_value_info("z", FLOAT, [512]))
    onnx.save(whole, path)
    file = ModelFile(path)
    assert len(file.structure_bytes()) < 2000
    for sign in (1, -1):
        assert_runs_alike(file, whole, {"x": np.full(512, sign, np.float32)})
    np.testing.assert_array_equal(file.array("inner"), np.full(512, 2, np.float32))
    assert load_model(path) == whole


def test_tensors_of_other_nodes_stay_inline(tmp_path: Path) -> None:
    keys = numpy_helper.from_array(np.arange(1000, dtype=np.int64))
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_tensor=keys, values_tensor=keys)
    onnx.save(model([node], ["x"], ["y"]), tmp_path / "m.onnx")
    attributes = ModelFile(tmp_path / "m.onnx").structure().graph.node[0].attribute
    assert all(len(a.t.raw_data) == 8000 for a in attributes)


def typed(name: str, dtype: int, values: np.ndarray) -> onnx.TensorProto:
    return helper.make_tensor(name, dtype, values.shape, values.ravel().tolist())


def test_weights_in_typed_fields_are_read(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    floats, doubles = random.standard_normal((20, 20)).astype(np.float32), random.standard_normal(300)
    ints, halfs = np.arange(-600, 600), random.standard_normal(1000).astype(np.float16)
    tensors = [
        typed("f", TensorProto.FLOAT, floats),
        typed("d", TensorProto.DOUBLE, doubles),
        typed("i", TensorProto.INT64, ints),
        typed("h", TensorProto.FLOAT16, halfs),
        helper.make_tensor("s", TensorProto.STRING, [2], [b"a", "ü".encode()]),
    ]
    whole, path = model([], [], [], tensors), tmp_path / "m.onnx"
    onnx.save(whole, path)
    file = ModelFile(path)
    assert set(external_refs(file.structure())) == {"f", "d"}
    for name, values in {"f": floats, "d": doubles, "i": ints, "h": halfs}.items():
        np.testing.assert_array_equal(file.array(name), values)
        assert (file.weights()[name].offset >= 0) == (name in "fd")
    assert file.array("s").tolist() == ["a", "ü"]


@pytest.mark.parametrize("kind", ["int4", "uint4", "bfloat16", "float8_e4m3fn", "float4_e2m1fn", "bool"])
def test_types_that_numpy_lacks_are_read(tmp_path: Path, kind: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, kind, np.bool_))
    values = np.array([[0, 1, 2], [3, 1, 0]], np.float32).astype(dtype)
    whole, path = model([], [], [], [numpy_helper.from_array(values, "w")]), tmp_path / "m.onnx"
    onnx.save(whole, path)
    array = ModelFile(path).array("w")
    assert array.dtype == dtype
    np.testing.assert_array_equal(array.astype(np.float32), values.astype(np.float32))


def save_external(folder: Path, data_folder: Path | None = None) -> onnx.ModelProto:
    whole = mlp()
    onnx.save(whole, folder / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=1024)
    whole = mlp()
    if data_folder:
        data_folder.mkdir(parents=True)
        (folder / "w.bin").rename(data_folder / "w.bin")
    return whole


def test_external_data_next_to_the_model_is_read(tmp_path: Path) -> None:
    whole = save_external(tmp_path)
    file = ModelFile(tmp_path / "m.onnx")
    assert {ref["location"] for ref in external_refs(file.structure()).values()} == {"w.bin"}
    assert_runs_alike(file, whole, {"x": np.ones((1, 64), np.float32)})
    assert load_model(tmp_path / "m.onnx") == whole


def test_external_data_in_another_folder_needs_one_common_folder(tmp_path: Path) -> None:
    models, data = tmp_path / "models", tmp_path / "data" / "deep"
    models.mkdir()
    whole = save_external(models, data)
    extra = numpy_helper.from_array(np.ones((64, 64), np.float32), "own")
    with_own = onnx.load(models / "m.onnx", load_external_data=False)
    for proto in (with_own, whole):
        proto.graph.initializer.append(extra)
        proto.graph.node.append(helper.make_node("MatMul", ["r2", "own"], ["z"]))
        proto.graph.output.add().CopyFrom(helper.make_tensor_value_info("z", FLOAT, ["N", 64]))
    (models / "m.onnx").write_bytes(with_own.SerializeToString())
    file = ModelFile(models / "m.onnx", str(data))
    assert file.folder == tmp_path
    assert_runs_alike(file, whole, {"x": np.ones((1, 64), np.float32)})
    with pytest.raises(BadFile, match="external-data-dir"):
        ModelFile(models / "m.onnx").structure()
    ignored = ModelFile(models / "m.onnx", ignore_external_data=True)
    assert {ref["location"] for ref in external_refs(ignored.structure()).values()} == {"w.bin", "m.onnx"}
    with pytest.raises(BadFile, match="ignored"):
        ignored.array("w0")


def test_a_linked_model_finds_its_external_data(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    whole = mlp()
    onnx.save(whole, tmp_path / "blobs" / "abc")
    (tmp_path / "snapshot").mkdir()
    link = tmp_path / "snapshot" / "m.onnx"
    link.symlink_to("../blobs/abc")
    assert_runs_alike(ModelFile(link), whole, {"x": np.ones((1, 64), np.float32)})


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("/etc/hostname", "inside the model's folder"),
        ("../secret", "inside the model's folder"),
        ("sub/../../secret", "inside the model's folder"),
        ("", "inside the model's folder"),
        ("link", "link that leaves"),
        ("dirlink/secret", "link that leaves"),
        ("loop", "is not in"),
        ("nothing", "is not in"),
        (".", "inside the model's folder"),
        ("folder", "not a regular file"),
        ("a\0b", "inside the model's folder"),
        ("short", "beyond its end"),
        ("pipe", "not a regular file"),
    ],
)
def test_external_data_must_stay_in_its_folder(tmp_path: Path, location: str, reason: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"s" * 5000)
    (folder / "short").write_bytes(b"s" * 10)
    (folder / "link").symlink_to("../secret")
    (folder / "dirlink").symlink_to("..")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[16], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, "length": "64"}.items():
        tensor.external_data.add(key=key, value=value)
    (folder / "m.onnx").write_bytes(model([], [], [], [tensor]).SerializeToString())
    with pytest.raises(BadFile, match=reason) as error:
        ModelFile(folder / "m.onnx").structure()
    assert "m.onnx" in str(error.value)
    assert "\0" not in str(error.value)


@pytest.mark.parametrize(("key", "value"), [("offset", "-1"), ("length", "x"), ("offset", "9" * 40), ("length", "٣")])
def test_external_numbers_are_checked(tmp_path: Path, key: str, value: str) -> None:
    (tmp_path / "w.bin").write_bytes(b"s" * 5000)
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[16], data_location=TensorProto.EXTERNAL)
    for k, v in {"location": "w.bin", "length": "64", key: value}.items():
        tensor.external_data.add(key=k, value=v)
    (tmp_path / "m.onnx").write_bytes(model([], [], [], [tensor]).SerializeToString())
    with pytest.raises(BadFile):
        ModelFile(tmp_path / "m.onnx").structure()


def test_external_data_over_two_gigabytes_are_read(tmp_path: Path) -> None:
    count = 3 * (1 << 30) // 4
    with (tmp_path / "w.bin").open("wb") as stream:
        stream.truncate(4 * count)
        stream.seek(4 * count - 4)
        stream.write(np.float32(7).tobytes())
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[count], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    (tmp_path / "m.onnx").write_bytes(model([], [], [], [tensor]).SerializeToString())
    file = ModelFile(tmp_path / "m.onnx")
    ref = external_refs(file.structure())["w"]
    assert ref == {"location": "w.bin", "offset": "0", "length": str(4 * count)}
    array = file.array("w")
    assert array[-1] == 7
    assert array[0] == 0


def test_a_file_over_two_gigabytes_is_read(tmp_path: Path) -> None:
    from layerwise._tool.backends.model.wire import put_bytes, put_int, put_varint

    nbytes = 3 << 30
    head = put_bytes(8, b"w") + put_int(2, FLOAT) + put_int(1, nbytes // 4) + b"\x4a" + put_varint(nbytes)
    initializer = b"\x2a" + put_varint(len(head) + nbytes) + head
    start = put_int(1, 8) + b"\x3a" + put_varint(len(initializer) + nbytes) + initializer
    with (tmp_path / "m.onnx").open("wb") as stream:
        stream.write(start)
        stream.truncate(len(start) + nbytes)
    file = ModelFile(tmp_path / "m.onnx")
    assert external_refs(file.structure())["w"]["length"] == str(nbytes)
    assert file.array("w").shape == (nbytes // 4,)
    assert len(file.structure_bytes()) < 200


def test_old_models_functions_and_empty_graphs_are_read(tmp_path: Path) -> None:
    old = mlp()
    old.ir_version = 3
    for tensor in old.graph.initializer:
        old.graph.input.add().CopyFrom(helper.make_tensor_value_info(tensor.name, FLOAT, tensor.dims))
    onnx.save(old, tmp_path / "old.onnx")
    assert_runs_alike(ModelFile(tmp_path / "old.onnx"), old, {"x": np.ones((1, 64), np.float32)})
    weight = numpy_helper.from_array(np.ones(512, np.float32))
    body = [helper.make_node("Constant", [], ["c"], value=weight), helper.make_node("Add", ["a", "c"], ["b"])]
    function = helper.make_function("mine", "Inc", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    nodes = [helper.make_node("Inc", ["x"], ["y"], domain="mine")]
    whole = model(nodes, ["x"], ["y"], shape=[512])
    whole.functions.append(function)
    whole.opset_import.append(helper.make_opsetid("mine", 1))
    onnx.save(whole, tmp_path / "function.onnx")
    file = ModelFile(tmp_path / "function.onnx")
    assert len(file.structure_bytes()) < 1000
    assert_runs_alike(file, whole, {"x": np.ones(512, np.float32)})
    onnx.save(model([], [], []), tmp_path / "empty.onnx")
    assert ModelFile(tmp_path / "empty.onnx").weights() == {}


def test_structure_keys_depend_on_structure_and_weight_locations(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "m.onnx", tmp_path / "b" / "m.onnx"
    for path, seed in ((first, 0), (second, 1)):
        path.parent.mkdir()
        sample = mlp(seed=seed)
        for tensor in sample.graph.initializer:
            if tensor.name.startswith("b"):
                tensor.CopyFrom(numpy_helper.from_array(np.zeros(64, np.float32), tensor.name))
        onnx.save(sample, path)
    assert ModelFile(first).structure_key() == ModelFile(second).structure_key()


@pytest.mark.parametrize("data", [b"", b"# A readme\n\nwith some text\n" * 50, b"\0" * 100, b"PK\x03\x04" + b"a" * 99])
def test_files_that_are_not_models_are_rejected(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(BadFile, match="not an ONNX model"):
        ModelFile(tmp_path / "m.onnx")


def test_paths_that_are_not_files_are_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "missing", tmp_path / "pipe", Path("/dev/zero"), tmp_path / "a\0b"):
        with pytest.raises(BadFile):
            ModelFile(path)


def test_unusual_file_names_are_accepted(tmp_path: Path) -> None:
    whole, feed = mlp(), {"x": np.ones((1, 64), np.float32)}
    onnx.save(whole, tmp_path / "mö del 模型.onnx")
    assert_runs_alike(ModelFile(tmp_path / "mö del 模型.onnx"), whole, feed)
    for name in (os.fsdecode(b"\xff\xfe.onnx"), "a\n\x1b[31m.onnx"):
        onnx.save(whole, tmp_path / name)
        with pytest.raises(BadFile, match="rename") as error:
            ModelFile(tmp_path / name).structure()
        assert str(error.value).isprintable()


def test_names_must_be_text(tmp_path: Path) -> None:
    data = model([helper.make_node("Relu", ["x"], ["y"], name="ABCD")], ["x"], ["y"]).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data.replace(b"ABCD", b"\xff\xfe\x80A"))
    with pytest.raises(BadFile, match="UTF-8"):
        ModelFile(tmp_path / "m.onnx").structure()


def test_values_must_fit_the_shape(tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[1 << 40, 1 << 40], raw_data=b"abcd")
    negative = TensorProto(name="n", data_type=FLOAT, dims=[-1], raw_data=b"")
    unknown = TensorProto(name="u", data_type=99, dims=[1], raw_data=b"abcd")
    (tmp_path / "m.onnx").write_bytes(model([], [], [], [tensor, negative, unknown]).SerializeToString())
    for name in ("w", "n", "u", "missing"):
        with pytest.raises(BadFile):
            ModelFile(tmp_path / "m.onnx").array(name)


def test_opening_and_scanning_read_no_weights(tmp_path: Path) -> None:
    path = DATA / "light" / "light_densenet121.onnx"
    assert len(ModelFile(path).weights()) == len(onnx.load(path).graph.initializer)
    big = tmp_path / "big.onnx"
    tensor = numpy_helper.from_array(np.zeros(1 << 26, np.float32), "w")
    big.write_bytes(model([], [], [], [tensor]).SerializeToString())
    code = "import sys; from layerwise._tool.backends.model.file import ModelFile;"
    code += "ModelFile(sys.argv[1]).structure_bytes();"
    code += "print(open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-c", code, big], capture_output=True, text=True, check=True)
    peak = next(line for line in done.stdout.splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) < 40_000, "kB: 256 MB of weights must not be read"
