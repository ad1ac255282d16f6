"""Contents of engines and networks, read from the fake of both versions, alone and over the real bindings."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.trt.inference.engine import EngineTensor
from layerwise._tool.backends.trt.inspect.engine import EngineView
from layerwise._tool.backends.trt.inspect.layers import EngineLayer, LayerTensor, layers_of, metadata_nodes
from layerwise._tool.debugtools.engines.inspect.text import engine_picture

RunIn = Callable[..., str]
INSPECT = """
import os
from msgspec.structs import replace as replaced
from pathlib import Path
from layerwise._tool.backends.trt.inference.engine import load_engine
from layerwise._tool.backends.trt.inspect.engine import engine_view
from layerwise._tool.backends.trt.inspect.network import layer_classes, network_view
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.debugtools.engines.inspect.action import engine_document, network_document
from layerwise._tool.debugtools.engines.inspect.text import engine_lines, network_lines
from layerwise._tool.backends.trt.building.builder import Builder
from layerwise._tool.backends.builds import no_progress
SHOW = ["layers", "attrs", "weights"]
def built(model=None, verbosity="detailed", *profiles, **config):
    options = TrtOptions(profiles=list(profiles) or [range_of(1, 2, 4)], fresh=True,
                         config=ConfigOptions(profiling_verbosity=verbosity, **config))
    return build_engine(model or conv(), options).data
def viewed(data):
    return engine_view(trt, load_engine(trt, data, "an engine", Messages(), RunOptions()))
def network(model, **options):
    builder = Builder(model, TrtOptions(network=NetworkOptions(**options), fresh=True), no_progress, Messages(), None)
    made = builder.network()
    return network_view(trt, made.network), made
def acted(action, **fields):
    from layerwise._tool.backends.jobs.context import JobContext
    Path("spec.json").write_text(json.dumps({"params": fields}))
    return action(JobContext(Path("."), 1))
"""


@pytest.fixture
def run(scenario: RunIn) -> Callable[[str], str]:
    return lambda source: scenario(INSPECT + source)


def test_an_engine_is_read_with_every_profile_and_layer(run: Callable[[str], str], trt_version: int) -> None:
    said = run("""
view = viewed(built(None, "detailed", range_of(1, 2, 4), range_of(8, 8, 16), refittable=True))
print(json.dumps(engine_document(view, SHOW, {"c": "min=0.00"})))
""")
    found = json.loads(said)
    assert found["refittable"] and found["build"]["Profiling Verbosity"] == "DETAILED"
    assert found["inputs"] == [{"name": "x", "index": 0, "dtype": "float32", "shape": [-1, 3, 8, 8],
                                "location": "device", "format": found["inputs"][0]["format"]}]  # fmt: skip
    assert [each["inputs"]["x"]["max"][0] for each in found["profiles"]] == [4, 16]
    assert found["device_memory"] > 0 and found["weights"] == 432 and found["n_layers"] == [2, 2]
    for layers in found["layers"]:
        assert [(layer["name"], layer["nodes"]) for layer in layers] == [("conv", ["conv"]), ("relu", ["relu"])]
    made = found["layers"][0][0]["outputs"][0]
    assert (made["dtype"], made["shape"], made["values"]) == ("float32", [-1, 4, 6, 6], "min=0.00")
    assert made["format"] == {10: "Row major linear FP32", 11: "FP32 Row major linear"}[trt_version]
    assert found["layers"][0][0]["attributes"]["TacticValue"].startswith("0x")


def test_without_detailed_verbosity_layers_have_only_names(run: Callable[[str], str]) -> None:
    said = run("""
for verbosity in ("layer_names_only", "none"):
    view = viewed(built(None, verbosity))
    print([(layer.name, layer.kind, layer.nodes) for layers in view.layers for layer in layers])
""")
    assert said.splitlines() == ["[('conv', 'Unknown', []), ('relu', 'Unknown', [])]", "[]"]


def test_a_shape_tensor_is_shown_with_its_profiles_values(run: Callable[[str], str]) -> None:
    said = run("""
nodes = [helper.make_node("Reshape", ["x", "s"], ["y"], "reshape")]
model = bytes_of(nodes, [value("x", ["N", 4]), value("s", [2], TensorProto.INT64)], [value("y", [None, None])])
profile = ProfileSpec(min={"x": [1, 4], "s": [1, 1]}, opt={"x": [2, 4], "s": [2, 4]}, max={"x": [4, 4], "s": [16, 16]})
view = viewed(build_engine(model, TrtOptions(profiles=[profile], fresh=True)).data)
print("\\n".join(engine_lines(view, [], {})))
""")
    assert "| Values: min=(1, 1), opt=(2, 4), max=(16, 16)" in said
    assert "| Shapes: min=(1, 4), opt=(2, 4), max=(4, 4)" in said


def test_a_network_is_read_with_attributes_and_weights(run: Callable[[str], str], trt_version: int) -> None:
    said = run("""
view, made = network(conv())
print(json.dumps(network_document(view, SHOW)))
print("\\n".join(network_lines(view, ["weights"])))
print(view.strongly_typed, network(conv(), strongly_typed=True)[0].strongly_typed)
""").splitlines()
    found = json.loads(said[0])
    first, second = found["layers"]
    assert first["name"] == "conv" and first["kind"] == "CONVOLUTION" and first["nodes"] == ["conv"]
    assert first["attributes"]["stride_nd"] == [1, 1] and first["attributes"]["num_output_maps"] == 4
    assert first["attributes"]["kernel"]["shape"] == [4, 3, 3, 3]
    assert len(first["attributes"]["kernel"]["values"]) == 4
    assert second["attributes"]["type"] == "ActivationType.RELU"
    assert "    ---- 1 Weight(s) ----" in said and any(line.startswith("    conv.kernel = Weights") for line in said)
    assert said[-1] == {10: "False True", 11: "True True"}[trt_version]


def test_every_type_of_layer_has_its_class(run: Callable[[str], str]) -> None:
    said = run("""
classes = layer_classes(trt)
print([name for name in trt.LayerType.__members__ if name not in classes])
print(classes["TOPK"].__name__, classes["ELEMENTWISE"].__name__, classes["CONDITIONAL_INPUT"].__name__)
""")
    assert said.splitlines() == ["['PLUGIN']", "ITopKLayer IElementWiseLayer IIfConditionalInputLayer"]


def test_a_network_made_by_a_script_is_read(run: Callable[[str], str]) -> None:
    said = run("""
Path("net.py").write_text('''
import numpy as np, tensorrt as trt
def load_network(builder, network):
    x = network.add_input("x", trt.float32, (1, 2))
    half = network.add_constant((1, 2), np.full((1, 2), 0.5, np.float32))
    added = network.add_elementwise(x, half.get_output(0), trt.ElementWiseOperation.SUM)
    added.get_output(0).name = "y\\\\x1b[31m"
    network.mark_output(added.get_output(0))
''')
view, made = network(Loadable(path=Path("net.py")), function="load_network")
print("\\n".join(network_lines(view, SHOW)))
""")
    assert "[Op: LayerType.ELEMENTWISE]" in said and "= ElementWiseOperation.SUM" in said
    assert ".weights = Weights: [dtype=float32, shape=(1, 2)] | Values:" in said and "[[0.5 0.5]]" in said
    assert "y\\x1b[31m" in said and "\x1b" not in said


def test_errors_for_invalid_engines_name_file_and_reason(run: Callable[[str], str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.engine")
    said = run("""
from layerwise._tool.debugtools.engines.inspect.action import inspect_trt
whole = built()
Path("bad.engine").write_bytes(b"no engine")
Path("cut.engine").write_bytes(whole[:300])
Path("empty.engine").write_bytes(b"")
Path("onnx.engine").write_bytes(conv().data)
for name in ("bad", "cut", "empty", "onnx", "pipe", "none"):
    print(error_of(lambda: acted(inspect_trt, engine=f"{name}.engine")))
print(error_of(lambda: acted(inspect_trt, model="bad.engine")))
Path("m.engine").write_bytes(whole)
for need in (lambda given: acted(inspect_trt, engine="m.engine", options={"network": given}),
             lambda given: opened(Loadable(), TrtOptions(engine="m.engine", network=NetworkOptions(**given)))):
    print(error_of(lambda: need({"plugins": ["none.so"]})), "|", error_of(lambda: need({})))
print(error_of(lambda: acted(inspect_trt)))
""").splitlines()
    assert all("Magic tag does not match" in line and ".engine: " in line for line in said[:4])
    assert said[4] == "BadFile: pipe.engine: is a pipe, not a regular file" and "No such file" in said[5]
    assert said[6].startswith("BadFile: bad.engine: not an ONNX model") and said[9].startswith("UsageError")
    nowhere = "none.so: cannot be loaded: none.so: cannot open shared object file: No such file or directory"
    assert said[7:9] == [f"BadFile: {nowhere} | no error"] * 2


def test_the_parser_is_queried_for_a_model_and_its_parts(run: Callable[[str], str]) -> None:
    """The second model has a type in the middle that TensorRT lacks, between supported operators."""
    said = run("""
Path("m.onnx").write_bytes(conv().data)
nodes = [helper.make_node("Relu", ["x"], ["a"], "relu"), helper.make_node("Cast", ["a"], ["b"], "wide", to=13),
         helper.make_node("Cast", ["b"], ["y"], "back", to=1)]
Path("wide.onnx").write_bytes(bytes_of(nodes, [value("x", [2])], [value("y", [2])]).data)
from layerwise._tool.debugtools.engines.capability.action import capability
for name in ("m.onnx", "wide.onnx"):
    for deep in (False, True):
        print(json.dumps(acted(capability, model=name, folder="parts", deep=deep)))
Path("bad.onnx").write_bytes(b"bad")
print(error_of(lambda: acted(capability, model="bad.onnx", folder="parts")))
print(error_of(lambda: acted(capability, model="m.onnx", folder="parts", options={"onnx_flags": ["NONE"]})))
""").splitlines()
    whole, again, found, deep = map(json.loads, said[:4])
    assert whole["supported"] and whole == again and whole["parts"] == []
    for result in (found, deep):
        assert [(part["first"], part["last"], part["supported"]) for part in result["parts"]] == [
            (0, 0, True), (1, 2, False)
        ]  # fmt: skip
        assert "Unsupported data type" in result["parts"][1]["reason"] and result["refusals"][0]["name"] == "wide"
    assert found["summary"].splitlines()[1].split(" | ")[1:] == ["Operator", "Node", "Reason"]
    assert said[4].startswith("BadFile: bad.onnx") and "'NONE': this TensorRT has" in said[5]


def test_layers_are_exported_as_an_onnx_graph(run: Callable[[str], str]) -> None:
    said = run("""
from layerwise._tool.debugtools.engines.inspect.text import engine_picture, network_picture
for model in (network_picture(network(conv())[0]), engine_picture(viewed(built()))):
    onnx.checker.check_model(model)
    first = model.graph.node[0]
    found = {a.name: helper.get_attribute_value(a) for a in first.attribute}
    print(first.name, list(first.input), list(first.output), found["nodes"].decode(), found.get("stride_nd"),
          [v.type.tensor_type.shape.dim[1].dim_value for v in (*model.graph.input, *model.graph.output)])
from layerwise.backend.trt import NetworkFromOnnxBytes, onnx_like_from_network
print([node.op_type for node in onnx_like_from_network(NetworkFromOnnxBytes(conv().data)).graph.node])
""")
    *drawn, kinds = said.splitlines()
    assert drawn == ["conv ['x'] ['c'] conv [1, 1] [3, 4]", "conv ['x'] ['c'] conv None [3, 4]"]
    assert kinds == "['CONVOLUTION', 'ACTIVATION']"


def test_a_tensor_that_several_layers_write_is_several_in_the_graph() -> None:
    ends = [EngineTensor("x", "float32", (2,), True, False), EngineTensor("y", "float32", (2,), False, False)]
    y = LayerTensor("y", "float32", (2,))
    second = EngineLayer("b", "k", [y], [y], attributes={"big": 1 << 70, "no": None})
    layers = [EngineLayer("a", "k", [LayerTensor("x")], [y]), second]
    graph = engine_picture(EngineView("", False, ends, [], 0, None, 0, [layers])).graph
    assert [(list(node.input), list(node.output)) for node in graph.node] == [(["x"], ["y"]), (["y"], ["y #2"])]
    assert [value.name for value in graph.output] == ["y #2"] and len(graph.node[1].attribute) == 1


TEN = r"""{"Layers": [{"Name": "Conv_0 + Relu_1 [profile 1]", "LayerType": "CaskConvolution", "Inputs": [
{"Name": "x", "Location": "Device", "Dimensions": [1,3,8,8], "Format/Datatype": "Channel major FP16 format"}],
"Outputs": [{"Name": "y", "Location": "Device", "Dimensions": [1,4,6,6], "Format/Datatype": "N/A due to dynamic"}],
"ParameterType": "Convolution", "Weights": {"Type": "Half", "Count": 108}, "TacticValue": "0x12",
"Metadata": "[ONNX Layer: a/Conv[0]]\u001f[ONNX Layer: b]\u001e[ONNX Layer: b][ONNX Layer: c]"}], "Bindings": ["x"]}"""
ELEVEN = """{"Layers": [{"Name": "__myl_Fc_0", "LayerType": "kgen", "Inputs": [{"Name": "x", "Dimensions": [2],
"Format": "Row major linear", "Datatype": "Int8"}], "Outputs": [{"Name": "y", "Dimensions": [2]}]}, "reformat"],
"I/O Tensors": [{"Name": "x", "IOMode": "Input"}]}"""


def test_both_schemas_of_the_inspector_are_read() -> None:
    (layer,) = layers_of(TEN)
    assert (layer.name, layer.profile, layer.nodes) == ("Conv_0 + Relu_1", 1, ["a/Conv[0]", "b", "c"])
    assert (layer.inputs[0].dtype, layer.inputs[0].shape) == ("float16", (1, 3, 8, 8))
    assert (layer.outputs[0].dtype, layer.outputs[0].format) == ("", "")
    assert layer.attributes["Weights"] == {"Type": "Half", "Count": 108}
    first, second = layers_of(ELEVEN)
    assert (first.kind, first.inputs[0].dtype, first.inputs[0].format) == ("kgen", "int8", "Int8 Row major linear")
    assert (first.nodes, second.name, second.kind) == ([], "reformat", "Unknown")
    assert metadata_nodes("") == []


def test_renamed_layers_are_matched_by_tensors_and_values(run: Callable[[str], str]) -> None:
    """Three of five layers, and their outputs, have TensorRT's own names."""
    said = run("""
os.environ["LAYERWISE_FAKE_TRT_FAULTS"] = json.dumps({"internal": ["neg", "exp", "sqrt"]})
reads = {"abs": "x", "neg": "a", "exp": "n", "sqrt": "e", "tanh": "s"}
nodes = [helper.make_node(op.title(), [read], [made], op) for (op, read), made in zip(reads.items(), "anesy")]
model = bytes_of(nodes, [value("x", ["N", 8])], [value("y", ["N", 8])])
Path("m.onnx").write_bytes(model.data)
profile = ProfileSpec(min={"x": [1, 8]}, opt={"x": [3, 8]}, max={"x": [4, 8]})
from layerwise._tool.debugtools.engines.inspect.action import inspect_trt
for watched in (True, False):
    options = TrtOptions(profiles=[profile], network=NetworkOptions(mark_unfused=watched), fresh=True)
    options = replaced(options, config=ConfigOptions(profiling_verbosity="detailed"))
    Path("m.engine").write_bytes(build_engine(model, options).data)
    found = acted(inspect_trt, engine="m.engine", nodes_of="m.onnx", json=True)["description"]["nodes"]
    print(" ".join(f"{name}:{'+'.join(each['by'] for each in layers)}" for name, layers in found.items()))
from layerwise._tool.backends.jobs.journal.events import read_events
print([event["text"] for event in read_events(Path(".")) if event["type"] == "warning"][-1])
""")
    *maps, warned = said.splitlines()
    assert maps == ["abs:name neg:value exp:value sqrt:value tanh:name", "abs:name neg: exp: sqrt: tanh:name"]
    assert "--mark-unfused-tensors-as-debug-tensors" in warned


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "[]", "{}", '{"Layers": 3}', '{"Layers": [3]}', "[" * 100_000, '{"Layers": [{"Inputs": [3]}]}',
     '{"Layers": [{"Inputs": [{"Dimensions": "x"}]}]}'],
)  # fmt: skip
def test_invalid_layer_json_is_an_error(text: str) -> None:
    with pytest.raises(LayerwiseError, match="no JSON of layers"):
        layers_of(text)
