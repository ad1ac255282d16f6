"""More files of the comparison with Polygraphy: odd models, saved data and replays."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from polygraphy.comparator import Comparator, IterationResult, L2CompareFunc, RunResults, SimpleCompareFunc
from polygraphy.json import save_json
from polygraphy.logger import G_LOGGER
from support.sample_models import model

SCRIPTS = {
    "loader.py": "import numpy as np\n\ndef load_data():\n    for n in range(2):\n"
    "        yield {'x': np.full((1, 8), n + 1, np.float32)}\n\ndef other():\n"
    "    yield {'x': np.full((1, 8), 3, np.float32)}\n",
    "post.py": "def postprocess_outputs(result):\n    for name in list(result):\n"
    "        result[name] = result[name] * 0\n    return result\n",
    "judge.py": "def compare_outputs(first, second):\n    return {name: True for name in first}\n\n"
    "def never(first, second):\n    return {name: False for name in first}\n",
    "net.py": "def postprocess(network):\n    print('postprocessed', network.num_layers)\n\n\nother = postprocess\n",
    "config.py": "def load_config(builder, network):\n    return builder.create_builder_config()\n\n\n"
    "def postprocess_config(builder, network, config):\n    print('config seen')\n",
    "list.txt": "w0\n",
    "t.json": "{}",
    "m.engine": "no engine",
    "model.pb": "no graph",
    "empty.onnx": "",
    "matched.yaml": "name: PLUGIN\nop: PLUGIN\ninstances:\n- inputs: [g0]\n  outputs: [r0]\n  attributes: {n: 1}\n",
}
PLUGIN = """import onnx_graphsurgeon as gs


def get_plugin_pattern():
    pattern = gs.GraphPattern()
    x, w, b = pattern.variable(), pattern.variable(), pattern.variable()
    pattern.set_output_tensors([pattern.add("relu", "Relu", inputs=[pattern.add("gemm", "Gemm", inputs=[x, w, b])])])
    return pattern


def get_matching_subgraphs(graph):
    return [
        {"inputs": [t.name for t in match.inputs], "outputs": [t.name for t in match.outputs], "attributes": {"n": 1}}
        for match in get_plugin_pattern().match_all(graph)
    ]


def get_plugin_metadata():
    return {"name": "PLUGIN", "op": "PLUGIN", "io_type": 0}
"""
# in 1024ths, so that sums are exact in float32
FEEDS = [{"x": np.random.default_rng(n).integers(1, 1024, (1, 8)).astype(np.float32) / 1024} for n in range(2)]


def odd_models() -> dict[str, onnx.ModelProto]:
    """Models that a linter or a fold meets, by name."""
    return {"unbounded": _unbounded(), "shuffled": _shuffled(), "unknown": _one("Nothing"), "cycle": _cycle()}


def _one(op: str) -> onnx.ModelProto:
    return model([helper.make_node(op, ["x"], ["y"], name="only")], ["x"], ["y"], shape=[1, 8])


def _cycle() -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"], name="a"), helper.make_node("Relu", ["a"], ["b"], name="b")]
    return model([*nodes, helper.make_node("Relu", ["b"], ["y"], name="c")], ["x"], ["y"], shape=[1, 8])


def _shuffled() -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", ["a"], ["y"], name="second"), helper.make_node("Abs", ["x"], ["a"], name="first")]
    return model(nodes, ["x"], ["y"], shape=[1, 8])


def _unbounded() -> onnx.ModelProto:
    """x [8] → the indices of what is not zero: as many as the data say."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["size"], name="find"),
        helper.make_node("Abs", ["size"], ["y"], name="abs"),
    ]
    values = helper.make_tensor_value_info("x", TensorProto.FLOAT, [8])
    out = helper.make_tensor_value_info("y", TensorProto.INT64, [1, None])
    graph = helper.make_graph(nodes, "unbounded", [values], [out])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def stripped(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model as `surgeon weight-strip` leaves it."""
    for weight in proto.graph.initializer:
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight), weight.name))
        weight.raw_data = b""
        weight.doc_string = "TRT_WEIGHTLESS/"
    proto.doc_string = "-TRT_WEIGHTLESS"
    return proto


def make_data(folder: Path) -> None:
    """Inputs, results, verdicts and replays as JSON files, and the scripts."""
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text)
    (folder / "plugins" / "relu").mkdir(parents=True)
    (folder / "plugins" / "relu" / "pattern.py").write_text(PLUGIN)
    with G_LOGGER.verbosity(G_LOGGER.CRITICAL):
        _inputs(folder)
        _results(folder)
    _replays(folder)


def _inputs(folder: Path) -> None:
    save_json(FEEDS, str(folder / "in.json"))
    save_json(FEEDS[:1], str(folder / "in1.json"))
    save_json([{"X": feed["x"]} for feed in FEEDS], str(folder / "upper_in.json"))
    save_json([{"other": feed["x"]} for feed in FEEDS], str(folder / "renamed_in.json"))
    save_json([{"x": FEEDS[0]["x"][0]}], str(folder / "flat_in.json"))
    save_json([{"x": FEEDS[0]["x"].T}], str(folder / "turned_in.json"))
    (folder / "folder").mkdir()
    for n, feed in enumerate(FEEDS):
        save_json(feed, str(folder / "folder" / f"{n:010}.json"))


def _results(folder: Path) -> None:
    for name, off in (("out", 0.0), ("far", 1.0), ("near", 2.0**-20), ("nans", np.nan)):
        _save(folder, name, [{"y": feed["x"] + np.float32(off), "z": feed["x"]} for feed in FEEDS])
    for name, output in (("upper", "Y"), ("unlike", "unlike"), ("renamed", "out_y")):
        _save(folder, name, [{output: feed["x"]} for feed in FEEDS])
    _save(folder, "wide", [{"y": np.ones((8, 1), np.float32)}] * 2)
    steps = {"f": np.arange(0, 50, 7, np.float32), "i": np.arange(1, 9), "b": np.array([True, False] * 4)}
    _save(folder, "steps", [steps])
    _save(folder, "next_steps", [{"f": steps["f"] + np.float32(0.5), "i": steps["i"] + 1, "b": np.ones(8, bool)}])
    both = _ran("out", [{"y": feed["x"]} for feed in FEEDS])
    both["far"] = _ran("far", [{"y": feed["x"] + 1} for feed in FEEDS])["far"]
    both.save(str(folder / "both.json"))
    loose, distance = SimpleCompareFunc(atol=2), L2CompareFunc(l2_threshold=100)
    Comparator.compare_accuracy(both, compare_func=loose).save(str(folder / "acc.json"))
    Comparator.compare_accuracy(both, compare_func=[loose, distance]).save(str(folder / "accs.json"))


def _save(folder: Path, name: str, outputs: list[dict[str, np.ndarray]]) -> None:
    _ran(name, outputs).save(str(folder / f"{name}.json"))


def _ran(runner: str, outputs: list[dict[str, np.ndarray]]) -> RunResults:
    results = RunResults()
    results[runner] = [IterationResult(outputs=values, runtime=0.25, runner_name=runner) for values in outputs]
    return results


def _replays(folder: Path) -> None:
    tensor = {"dtype": "DataType.FLOAT", "strides": [8, 1], "vectorized_dim": -1, "components_per_element": 1}
    tensor["polygraphy_class"] = "TensorInfo"
    for place, tactic in (("good", 1), ("bad", 2)):
        (folder / "replays" / place).mkdir(parents=True)
        layer = {
            "implementation": 5,
            "tactic": tactic,
            "inputs": [tensor],
            "outputs": [tensor],
            "polygraphy_class": "Algorithm",
        }
        replay = {"replay": {"layer": layer}, "polygraphy_class": "TacticReplayData"}
        (folder / "replays" / place / "r.json").write_text(json.dumps(replay))
    judged = {"iteration_info": {"iteration": 0}, "success": False, "polygraphy_class": "IterationContext"}
    (folder / "repeated.json").write_text(json.dumps({"_N0": {"state": {}, **judged}}))
    (folder / "reduced.json").write_text(json.dumps({"_N0_outputs": {"state": {"num_nodes": 2}, **judged}}))
