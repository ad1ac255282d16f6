# ruff: noqa: E501 (a row of a table is a line)
"""Loaders and runners of models, lazy and immediate, on the same files as in Polygraphy."""

import gc
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.both_packages import outcome
from support.models import mlp

from layerwise.backend.base import BaseRunner
from layerwise.backend.onnxrt import SessionFromOnnx
from layerwise.common import TensorMetadata
from layerwise.comparator import Comparator

MODELS = "model = onnx_from_path(path)\nnames = lambda m: [o.name for o in m.graph.output]\nops = lambda m: [n.op_type for n in m.graph.node]\n"
LOADERS: dict[str, str] = {
    "loaded": "names(model), names(OnnxFromPath(path)()), names(OnnxFromBytes(BytesFromPath(path))())",
    "bytes": "bytes_from_onnx(model) == BytesFromOnnx(lambda: model)(), type(bytes_from_onnx(model)).__name__",
    "outputs": "names(modify_outputs(model, outputs=['a0', 'y'])), names(model)",
    "outputs of a copy": "names(modify_outputs(model, outputs=['a0'], copy=True)), names(model)",
    "all outputs": "names(modify_outputs(model, constants.MARK_ALL)), names(ModifyOutputs(OnnxFromPath(path), constants.MARK_ALL, exclude_outputs=['a*', 'm0'])())",
    "patterns": "names(modify_outputs(model, ['a?', 'no*thing']))",
    "no pattern": "modify_outputs(model, ['no*thing'])",
    "unknown output": "modify_outputs(model, ['nothing'])",
    "unknown to exclude": "modify_outputs(model, exclude_outputs=['nothing'])",
    "types": "names(modify_outputs(model, mark_types=['relu'])), names(modify_outputs(onnx_from_path(path), mark_types=['NoType']))",
    "nothing to do": "names(modify_outputs(model))",
    "no file": "onnx_from_path(path + 'x')",
    "saved": "save_onnx(model, path + '.d/e/saved.onnx') is model, names(onnx_from_path(path + '.d/e/saved.onnx'))",
    "saved apart": "save_onnx(onnx_from_path(path), 'apart.onnx', external_data_path='w.data', size_threshold=0) and None\n(sorted(__import__('os').listdir()), names(onnx_from_path('apart.onnx', external_data_dir='.')), len(onnx_from_path('apart.onnx', ignore_external_data=True).graph.initializer[0].raw_data))",
    "shapes": "v = infer_shapes(model, allow_onnxruntime=False).graph.value_info\nsorted(x.name for x in v)",
    "shapes of a path": "sorted(x.name for x in InferShapes(path, allow_onnxruntime=False)().graph.value_info)",
    "graph": "g = gs_from_onnx(model)\n([t.name for t in g.inputs], [n.op for n in g.nodes])",
    "cut": "names(extract_subgraph(model, TensorMetadata().add('a0', np.float32, ('batch', 16)), TensorMetadata().add('a1', np.float32, None)))",
    "cut nodes": "ops(extract_subgraph(model, TensorMetadata().add('a0', np.float32, ('batch', 16)), TensorMetadata().add('a1', None, None), check_meta=False))",
    "cut inputs": "[(i.name, onnx_util.get_shape(i), repr(onnx_util.get_dtype(i))) for i in extract_subgraph(model, TensorMetadata().add('a0', np.float16, (3, 16))).graph.input]",
    "cut unknown": "extract_subgraph(model, TensorMetadata().add('nothing', np.float32, (1,)))",
    "cut a graph": "g = gs_from_onnx(model)\n(type(extract_subgraph(g, None, TensorMetadata().add('a0', None, None))).__name__, len(g.nodes))",
    "halves": "sorted({t.data_type for t in convert_to_fp16(model).graph.initializer})",
    "halves of a copy": "m = convert_to_fp16(onnx_from_path(path), copy=True)\n[i.type.tensor_type.elem_type for i in (*m.graph.input, *m.graph.output)]",
    "number of nodes": "onnx_util.get_num_nodes(model), onnx_util.all_tensor_names(model), onnx_util.all_tensor_names(model, include_inputs=True)[-1]",
    "metadata": "str(onnx_util.get_input_metadata(model.graph)), str(onnx_util.get_output_metadata(model.graph))",
    "weights": "onnx_util.get_values(model.graph.initializer[1]).shape, list(onnx_util.get_shape(model.graph.initializer[0])), str(onnx_util.get_tensor_metadata(model.graph.initializer[:1]))",
    "damaged weights": "t = type(model.graph.initializer[0])(name='t', data_type=1, dims=[7], raw_data=b'123')\nonnx_util.get_values(t)",
    "described": "onnx_util.str_from_onnx(model)",
    "described with nodes": "onnx_util.str_from_onnx(model, show_layers=True, show_attrs=True).rstrip()",
    "gs metadata": "str(onnx_util.meta_from_gs_tensors(gs_from_onnx(model).inputs))",
    "thresholds": "onnx_loader.LARGE_MODEL_THRESHOLD, onnx_loader.PROTOBUF_THRESHOLD",
    "tensorflow": "OnnxFromTfGraph(lambda: 1)()",
    "sessions": "[i.name for i in session_from_onnx(path).get_inputs()], [i.name for i in SessionFromOnnx(lambda: bytes_from_path(path), providers=['cpu'])().get_inputs()]",
    "no provider": "SessionFromOnnx(path, providers=['no such'])()",
    "runner": """with OnnxrtRunner(SessionFromOnnx(path), name='r') as r:
    found = r.infer({'x': np.ones((2, 16), np.float32)})
    seen = (r.name, r.is_active, r.last_inference_time() > 0, [(n, str(m.dtype), m.shape) for n, m in r.get_input_metadata().items()], str(r.get_input_metadata(use_numpy_dtypes=False)))
(found, seen, r.is_active)""",
    "wrong type": "with OnnxrtRunner(SessionFromOnnx(path)) as r:\n    r.infer({'x': np.ones((2, 16))})\n1",
    "wrong shape": "with OnnxrtRunner(SessionFromOnnx(path)) as r:\n    r.infer({'x': np.ones((2, 3), np.float32)})\n1",
    "missing input": "with OnnxrtRunner(SessionFromOnnx(path)) as r:\n    r.infer({})\n1",
    "extra input": "with OnnxrtRunner(SessionFromOnnx(path)) as r:\n    r.infer({'x': np.ones((2, 16), np.float32), 'z': np.ones(1)})\n1",
    "session of one's own": "s = session_from_onnx(path)\nr = OnnxrtRunner(s)\nr.activate()\nr.deactivate()\n[i.name for i in s.get_inputs()], hasattr(r, 'sess')",
    "saved bytes": "save_bytes(b'abc', path + '.dir/b'), bytes_from_path(path + '.dir/b'), SaveBytes(lambda: b'd', path + '.b')(), bytes_from_path(path + '.b')",
    "not bytes": "save_bytes('text', path + '.c')",
    "script": "s = path.replace('m.onnx', 'script.py')\nopen(s, 'w').write('def f(a, b=1):\\n    return a + b\\nclass C:\\n    x = 5\\n    def __call__(self):\\n        return self.x\\n')\n(invoke_from_script(s, 'f', 2, b=3), InvokeFromScript(s, 'f')(1), InvokeFromScript(s, 'C')(), InvokeFromScript(s, 'C').x, InvokeFromScript(s, 'f').__name__, mod.import_from_script(s, 'f')(5))",
    "no script": "InvokeFromScript(path + '.none.py', 'f')()",
    "loaded file": "util.load_file(path)[:2], util.get_file_size(path) > 9, util.get_file_size(path + 'x'), util.find_in_dirs('*.onnx', ['/nowhere', path.rpartition('/')[0]]) == [path]",
    "saved file": "util.save_file('text', path + '.t/u', mode='w') == path + '.t/u', util.load_file(path + '.t/u', mode='r')",
    "file objects": "f = open(path + '.f', 'w+')\nutil.save_file('abc', f, mode='w')\n(util.load_file(f, mode='r'), util.get_file_size(f), utilities.is_file_like(f), utilities.is_file_like(path))",
    "temporary file": "t = util.NamedTemporaryFile(prefix='a', suffix='.b')\nwith t as f:\n    f.write(b'1')\n(t.name.endswith('.b'), util.load_file(t.name))",
    "lock": "with util.LockFile(path):\n    pass\n__import__('os').path.exists(path + '.lock')",
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    onnx.save(mlp(), tmp_path / "m.onnx")
    return str(tmp_path / "m.onnx")


@pytest.mark.parametrize("name", LOADERS)
def test_a_loader_does_the_same(name: str, path: str, tmp_path: Path) -> None:
    head = MODELS if name not in ("no file", "no script") else ""
    found = []
    for package in ("layerwise", "polygraphy"):
        folder = tmp_path / package
        folder.mkdir()
        (folder / "m.onnx").write_bytes(Path(path).read_bytes())
        before = Path.cwd()
        os.chdir(folder)
        try:
            found.append(outcome(package, head + LOADERS[name], path=str(folder / "m.onnx")))
        finally:
            os.chdir(before)
    if name in ("no file", "no script", "tensorflow", "not bytes"):  # errors of other classes
        assert [each[0] for each in found] == ["raises", "raises"]
    else:
        assert found[0] == found[1]


def graph(
    nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[Any], weights: dict[str, Any]
) -> onnx.ModelProto:
    made = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )  # fmt: skip
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def foldable() -> onnx.ModelProto:
    """Two constants that are added, a constant node, and a shape that is known."""
    nodes = [
        helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.ones(2, np.float32))),
        helper.make_node("Mul", ["c", "k"], ["d"]), helper.make_node("Add", ["x", "d"], ["y"]),
        helper.make_node("Shape", ["y"], ["s"]), helper.make_node("Identity", ["s"], ["z"]),
    ]  # fmt: skip
    ones = np.ones(2, np.float32)
    return graph(
        nodes,
        [("x", TensorProto.FLOAT, [2])],
        [("y", TensorProto.FLOAT, [2]), ("z", TensorProto.INT64, [1])],
        {"a": ones, "b": ones},
    )


def unbounded() -> onnx.ModelProto:
    """The length of a range is an input's value."""
    nodes = [helper.make_node("Identity", ["n"], ["limit"]), helper.make_node("Range", ["zero", "limit", "one"], ["y"])]
    return graph(
        nodes,
        [("n", TensorProto.INT64, [])],
        [("y", TensorProto.INT64, ["m"])],
        {"zero": np.int64(0), "one": np.int64(1)},
    )


FOLDED = {
    "all": "fold_constants(model)",
    "lazy": "FoldConstants(lambda: model, copy=True)()",
    "without shapes": "fold_constants(model, fold_shapes=False)",
    "one pass": "fold_constants(model, num_passes=1)",
    "nothing": "fold_constants(model, num_passes=0)",
    "basic": "fold_constants(model, partitioning='basic')",
    "recursive": "fold_constants(model, partitioning='recursive', do_shape_inference=False)",
    "small": "fold_constants(model, size_threshold=1 << 20)",
    "strict": "fold_constants(model, error_ok=False, allow_onnxruntime_shape_inference=False)",
}


@pytest.fixture
def polygraphys(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Polygraphy's outcome; models that onnx-graphsurgeon before 0.6 writes are of onnx's newest IR version for it,
    which onnxruntime may not take."""

    def get(source: str, **given: Any) -> Any:
        with monkeypatch.context() as patched:
            patched.setattr(onnx, "IR_VERSION", 8)
            return outcome("polygraphy", source, **given)

    return get


@pytest.mark.parametrize("name", FOLDED)
def test_folding_leaves_the_same_operators(name: str, polygraphys: Callable[..., Any]) -> None:
    source = f"[n.op_type for n in {FOLDED[name]}.graph.node]"
    assert outcome("layerwise", source, model=foldable()) == polygraphys(source, model=foldable())


BOUNDED = {
    "found": "[t.name for t in onnx_util.get_unbounded_dds_tensors(gs_from_onnx(model))]",
    "set": "m = set_upper_bound(model, 5)\n(sorted(n.op_type for n in m.graph.node), sorted(o for n in m.graph.node for o in n.output))",
    "by name": "sorted(n.op_type for n in SetUpperBound(model, {'limit': 7})().graph.node)",
    "for others": "sorted(n.op_type for n in set_upper_bound(model, {'': 7}).graph.node)",
    "unknown": "set_upper_bound(model, {'nothing': 7})",
    "value": "m = set_upper_bound(model, 5)\nwith OnnxrtRunner(SessionFromOnnx(bytes_from_onnx(m))) as r:\n    y = r.infer({'n': np.array(9)})['y']\ny",
    "lowered": "g = onnx_util.lower_constant_nodes(gs_from_onnx(other))\n([n.op for n in g.nodes], len(g.tensors()))",
    "layerwise shapes": "g = gs_from_onnx(model)\nonnx_util.set_shapes_from_layerwise_meta(g, TensorMetadata().add('limit', np.int64, (3,)))\nlist(g.tensors()['limit'].shape)",
}  # fmt: skip


@pytest.mark.parametrize("name", BOUNDED)
def test_upper_bounds_are_set_alike(name: str, polygraphys: Callable[..., Any]) -> None:
    given = [{"model": unbounded(), "other": foldable()} for _ in range(2)]
    assert outcome("layerwise", BOUNDED[name], **given[0]) == polygraphys(BOUNDED[name], **given[1])


REFERENCES = {
    "registered": "sorted(references.OP_REGISTRY)",
    "norm": "import onnx_graphsurgeon as gs\nx = gs.Variable('x', np.float32, (1, 2, 3))\ny = gs.Variable('y', np.float32)\n"
    "n = gs.Node('InstanceNormalization', inputs=[x, gs.Constant('w', np.array([1, 2], np.float32)), gs.Constant('b', np.array([0, 3], np.float32))], outputs=[y])\n"
    "g = gs.Graph([n], [x], [y])\nwith PluginRefRunner(lambda: g) as r:\n    found = r.infer({'x': np.arange(6, dtype=np.float32).reshape(1, 2, 3)})\n(found, r.name[:16])",
    "own": "import onnx_graphsurgeon as gs\nwas = references.OP_REGISTRY.pop('Twice', None)\nreferences.register('Twice')(lambda attrs, x: [x * attrs['by']])\n"
    "x, y = gs.Variable('x', np.float32, (2,)), gs.Variable('y', np.float32)\ng = gs.Graph([gs.Node('Twice', inputs=[x], outputs=[y], attrs={'by': 2})], [x], [y])\n"
    "with PluginRefRunner(g) as r:\n    found = (r.infer({'x': np.ones(2, np.float32)}), str(r.get_input_metadata(use_numpy_dtypes=False)))\nfound",
    "mean": "import onnx_graphsurgeon as gs\nx, y = gs.Variable('x', np.float32, (1, 2, 2, 2)), gs.Variable('y', np.float32)\ng = gs.Graph([gs.Node('MeanVarianceNormalization', inputs=[x], outputs=[y])], [x], [y])\n"
    "with PluginRefRunner(g) as r:\n    found = r.infer({'x': np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)})\nfound",
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCES)
def test_references_of_plugins_do_the_same(name: str) -> None:
    assert outcome("layerwise", REFERENCES[name]) == outcome("polygraphy", REFERENCES[name])


RUNS = """
def runners():
    return [OnnxrtRunner(SessionFromOnnx(path), name=name) for name in "ab"]
results = Comparator.run(runners(), DataLoader(iterations=2), OPTIONS)
[(name, [it["y"].sum() for it in its]) for name, its in results]"""


@pytest.mark.parametrize(
    "options", ["warm_up=2", "use_subprocess=True", "streaming=False", "save_input_blob_path=path + '.raw'"]
)
def test_runs_give_the_same(options: str, path: str) -> None:
    gc.collect()  # Polygraphy's fork could destroy sessions of earlier tests, and wait for their threads
    source = RUNS.replace("OPTIONS", options)
    assert outcome("layerwise", source, path=path) == outcome("polygraphy", source, path=path)


def test_a_process_of_its_own_destroys_no_session_of_the_one_that_it_was_forked_from(path: str) -> None:
    """A session waits for its threads when it goes, and they are not in a fork."""

    class Collecting(BaseRunner):
        def get_input_metadata_impl(self) -> TensorMetadata:
            return TensorMetadata().add("x", np.float32, (1, 2))

        def infer_impl(self, feed_dict: Mapping[str, Any]) -> Mapping[str, Any]:
            gc.collect()
            return {"y": feed_dict["x"]}

    gc.disable()
    try:
        unused: list[Any] = [SessionFromOnnx(path, threads=4)()]
        unused.append(unused)
        del unused
        found = Comparator.run([Collecting("forked")], use_subprocess=True)
    finally:
        gc.enable()
    assert found["forked"][0]["y"].shape == (1, 2)


def test_files_that_runs_save_are_read_by_the_other(path: str, tmp_path: Path) -> None:
    for package, other in (("layerwise", "polygraphy"), ("polygraphy", "layerwise")):
        places = {"inputs": tmp_path / package / "in.json", "outputs": tmp_path / package / "out"}
        options = f"save_inputs_path={str(places['inputs'])!r}, save_outputs_path={str(places['outputs'])!r}"
        outcome(package, RUNS.replace("OPTIONS", options), path=path)
        source = "[[name, [it['y'] for it in its]] for r in RunResults.load_streaming(out) for name, its in r], list(StreamingDataLoader(inp))"
        given = {"out": str(places["outputs"]), "inp": str(places["inputs"])}
        assert outcome(other, source, **given) == outcome(package, source, **given) != []


def test_plots_are_saved_on_request(tmp_path: Path) -> None:
    from layerwise.comparator import IterationResult, SimpleCompareFunc
    from layerwise.comparator.util import build_heatmaps, scatter_plot_error_magnitude

    first, second = (IterationResult({"y": np.arange(24.0).reshape(2, 3, 4) + n}) for n in (0, 0.5))
    folders = {"save_heatmaps": str(tmp_path / "heat"), "save_error_metrics_plot": str(tmp_path / "scatter")}
    SimpleCompareFunc(**folders)(first, second)
    error = first["y"] - second["y"]
    build_heatmaps(error, 0, 1, "mine", save_dir=str(tmp_path / "own"))
    scatter_plot_error_magnitude(error, error, first["y"], 0, 1, "a", "b", "y", "y", save_dir=str(tmp_path / "own"))
    made = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png"))
    assert [name.partition("/")[0] for name in made] == ["heat", "own", "own", "own", "scatter", "scatter"]
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in made)
