"""What a job depends on: files by content, what scripts read, variables, versions; each change is told."""

import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from layerwise._tool.backends.jobs.identity import READ_WHOLE, content, differences, identity, touched
from layerwise._tool.backends.versions import versions

LARGE = 3 * READ_WHOLE


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(path: Path, offset: int, data: bytes) -> None:
    """Change a file in place, but neither its size nor its time."""
    state = path.stat()
    with path.open("r+b") as file:
        file.seek(offset)
        assert file.read(len(data)) != data
        file.seek(offset)
        file.write(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)


SCRIPTS = {
    "load.py": "from parts.reader import read as load_data\nimport shapes as s, json",
    "shapes.py": "SHAPE = (1, 2)",
    "parts/__init__.py": "",
    "parts/reader.py": "from . import names\nfrom . import (\n    names,\n    other,\n)\ndef read(): ...",
    "parts/names.py": "import os\nNAME = open('list.txt').read() + os.environ['WHERE'] + os.getenv(\"HOW\", '')",
    "parts/other.py": "ONE = 1",
    "list.txt": "numbers",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_all_that_a_script_imports_and_names_counts_by_content(name: str, here: Path) -> None:
    for script, text in SCRIPTS.items():
        path = here / script
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    params = {"feeds": {"script": "load.py"}}
    before, known = identity(params), content(params)
    assert identity(params) == before and content(params) == known
    assert {Path(file).name for file in before.files} == {Path(script).name for script in SCRIPTS}
    if not SCRIPTS[name]:
        (here / name).write_text("# changed")
    else:
        put(here / name, len(SCRIPTS[name]) - 1, b"#")
    assert differences(before, identity(params)) == [Path(name).name]
    assert content(params) != known


def test_layerwise_and_the_kernels_files_are_not_among_what_a_script_reads(here: Path) -> None:
    """Where Layerwise is on PYTHONPATH, as in its workers, its modules are found like those of the user."""
    imports = "import layerwise.backend.common\nfrom layerwise.comparator import DataLoader\n"
    (here / "load.py").write_text(f"{imports}open('/proc/self/statm')")
    assert [Path(file).name for file in identity({"feeds": {"script": "load.py"}}).files] == ["load.py"]


def test_variables_that_a_script_or_its_modules_name_count(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "load.py").write_text("from names import NAME")
    (here / "names.py").write_text(
        SCRIPTS["parts/names.py"] + "\nKEY, other = 'INDIRECT', '_'\nVALUE = os.environ[KEY]"
    )
    monkeypatch.setenv("INDIRECT", "1")
    monkeypatch.setenv("WHERE", "a secret")
    monkeypatch.delenv("HOW", raising=False)
    params = {"check": {"command": ["python3", "load.py"]}}
    before, known = identity(params), content(params)
    assert "secret" not in str(before.environment)
    monkeypatch.setenv("UNREAD", "1")
    monkeypatch.setenv("_", "/bin/another")
    assert not differences(before, identity(params))
    for name in ("WHERE", "HOW", "INDIRECT"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "another")
            assert differences(before, identity(params)) == [f"${name}"]
            assert content(params) != known


def large(path: Path) -> None:
    path.write_bytes(np.random.default_rng(0).bytes(LARGE))


def test_a_large_file_changed_with_size_and_time_kept_is_another(here: Path) -> None:
    large(here / "weights.npz")
    params = {"feeds": {"files": ["weights.npz"]}}
    before = identity(params)
    assert not differences(before, identity(params)) and not touched(before, identity(params))
    put(here / "weights.npz", LARGE // 128 + LARGE // 256, b"changed where no sample is taken")
    assert differences(before, identity(params)) == ["weights.npz"]
    assert touched(before, identity(params)) == ["weights.npz"]


def test_a_new_name_of_a_large_file_ends_no_job_that_runs(here: Path) -> None:
    large(here / "weights.npz")
    params = {"feeds": {"files": ["weights.npz"]}}
    before = identity(params)
    (here / "another name").hardlink_to(here / "weights.npz")
    now = identity(params)
    assert not differences(before, now, meanwhile=True) and touched(before, now) == ["weights.npz"]
    large(here / "new")
    (here / "new").replace(here / "weights.npz")
    assert differences(before, identity(params), meanwhile=True) == ["weights.npz"]


def test_versions_are_those_of_what_is_imported_first(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> dict[str, str]:
        versions.cache_clear()
        return {name: version for name, version in versions().items() if name.startswith("tensorrt")}

    before = dict(versions())
    monkeypatch.setattr(sys, "path", [str(here), *sys.path])
    (here / "tensorrt").mkdir()
    try:
        assert list(found()) == ["tensorrt"] and found()["tensorrt"].startswith("? of ")
        (here / "tensorrt-10.1.dist-info").mkdir()
        first = found()
        assert first["tensorrt"].startswith("10.1 of ")
        (here / "tensorrt-10.1.dist-info").rename(here / "tensorrt-10.2.dist-info")
        assert found()["tensorrt"].startswith("10.2 of ")
        os.utime(here / "tensorrt-10.2.dist-info", (1, 1))
        assert found()["tensorrt"] == "10.2 of 1970-01-01 00:00:01", "the same version, installed again"
        assert before.items() <= versions().items()
        (here / "onnx").mkdir()
        (here / "onnx-99.dist-info").mkdir()
        versions.cache_clear()
        assert versions()["onnx"].startswith("99 of ") and before["numpy"] == versions()["numpy"]
    finally:
        versions.cache_clear()


def _outside(name: str, file: str) -> onnx.TensorProto:
    tensor = numpy_helper.from_array(np.zeros(4, np.float32), name)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=file)
    return tensor


def _constant(output: str, file: str) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [output], value=_outside("", file))


def _inside(output: str, file: str) -> onnx.GraphProto:
    value = helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, [4])
    return helper.make_graph([_constant(output, file)], output, [], [value])


@pytest.mark.parametrize("place", ["initializer", "node", "body", "function"])
def test_external_data_counts_wherever_a_model_has_it(place: str, here: Path) -> None:
    (here / "w.bin").write_bytes(bytes(16))
    large = numpy_helper.from_array(np.ones(5000, np.float32), "large")
    nodes, weights, functions = [helper.make_node("Identity", ["large"], ["y"])], [large], []
    if place == "initializer":
        weights.append(_outside("w", "w.bin"))
    elif place == "node":
        nodes.append(_constant("w", "w.bin"))
    elif place == "body":
        bodies = {f"{branch}_branch": _inside(branch, "w.bin") for branch in ("then", "else")}
        nodes.append(helper.make_node("If", ["c"], ["w"], **bodies))
    else:
        opsets = [helper.make_opsetid("", 17)]
        functions.append(helper.make_function("own", "f", [], ["w"], [_constant("w", "w.bin")], opsets))
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [5000])
    graph = helper.make_graph(nodes, "g", [], [output], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=functions), here / "m.onnx")
    named = identity({"model": "m.onnx"}).files
    assert {Path(name).name for name in named} == {"m.onnx", "w.bin"}
