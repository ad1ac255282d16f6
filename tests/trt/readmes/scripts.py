"""The scripts that the lines of the READMEs name, by file; ours, with the API's word changed."""

_LOADER = """
import numpy as np


def load_data():
    for n in range({count}):
        yield {{{name!r}: np.full({shape}, n + 1, np.float32)}}
"""
_CONSTRAIN = """
    for layer in network:
        if layer.name in ("Add", "Sub"):
            layer.precision = trt.float32
        if layer.name == "Add":
            layer.set_output_type(0, trt.float32)
"""
SCRIPTS = {
    "data_loader.py": _LOADER.format(name="x", shape=(1, 1, 2, 2), count=5),
    "example.py": _LOADER.format(name="x", shape=(1, 1, 2, 2), count=4).replace("load_data", "calib_data"),
    "run/05/data_loader.py": _LOADER.format(name="X", shape=(1, 2, 28, 28), count=5)
    + """
if __name__ == "__main__":
    from layerwise.json import save_json

    save_json(list(load_data()), "custom_inputs.json", description="custom input data")
""",
    "generate_data.py": """
import numpy as np

from layerwise.comparator import RunResults
from layerwise.json import save_json

data = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
save_json([{"x": data}], "custom_inputs.json")
results = RunResults()
results.add([{"y": data}], runner_name="custom_runner")
results.save("custom_outputs.json")
""",
    "define_network.py": """
from layerwise import func
from layerwise.backend.trt import NetworkFromOnnxPath


@func.extend(NetworkFromOnnxPath("identity.onnx"))
def load_network(builder, network, parser):
    before = network.get_output(0)
    network.unmark_output(before)
    network.mark_output(network.add_identity(before).get_output(0))
""",
    "create_config.py": """
import tensorrt as trt

from layerwise import func
from layerwise.backend.trt import CreateConfig


@func.extend(CreateConfig())
def load_config(config):
    config.set_flag(trt.BuilderFlag.TF32)
""",
    "add_constraints.py": f"import tensorrt as trt\n\n\ndef postprocess(network):{_CONSTRAIN}",
    "constrained_network.py": f"""
import tensorrt as trt

from layerwise import func
from layerwise.backend.trt import NetworkFromOnnxPath


@func.extend(NetworkFromOnnxPath("./needs_constraints.onnx"))
def load_network(builder, network, parser):{_CONSTRAIN}""",
    "plugin/01/pattern.py": """
import onnx_graphsurgeon as gs


def get_plugin_pattern():
    pattern = gs.GraphPattern()
    first, second = pattern.variable(), pattern.variable()
    a, b = pattern.add("Anode", "A", inputs=[first]), pattern.add("Bnode", "B", inputs=[second])
    c = pattern.add("Cnode", "C", inputs=[a, b], check_func=lambda node: node.attrs["x"] < 2.0)
    pattern.set_output_tensors([pattern.add("Dnode", "D", inputs=[c]), pattern.add("Enode", "E", inputs=[c])])
    return pattern


def get_matching_subgraphs(graph):
    return [
        {
            "inputs": list({tensor.name for tensor in match.inputs}),
            "outputs": list({tensor.name for tensor in match.outputs}),
            "attributes": {"ToyX": int(match.get("Cnode").attrs["x"]) * 2},
        }
        for match in get_plugin_pattern().match_all(graph)
    ]


def get_plugin_metadata():
    return {"name": "toyPlugin", "op": "CustomToyPlugin"}
""",
    "plugin_autotuner/01/pattern.py": """
import onnx_graphsurgeon as gs


def get_plugin_pattern():
    pattern = gs.GraphPattern()
    conv = pattern.add("ConvNode", "Conv", inputs=[pattern.variable() for _ in range(3)])
    pattern.set_output_tensors([pattern.add("ReluNode", "Relu", inputs=[conv])])
    return pattern


def get_matching_subgraphs(graph):
    return [
        {"inputs": [t.name for t in match.inputs], "outputs": [t.name for t in match.outputs], "attributes": {}}
        for match in get_plugin_pattern().match_all(graph)
    ]


def get_plugin_metadata():
    return {"name": "convReluPlugin", "op": "ConvReluPlugin"}
""",
    "trt_conv_relu_plugin.py": '''
import tensorrt


class Creator(tensorrt.IPluginCreatorV3One):
    """What a registered plugin does here is an ONNX function: the fake runs no plugin."""

    does = """<opset_import: ["": 17]> ConvRelu (x, w, b) => (y) {
        c = Conv <kernel_shape=[3,3], pads=[1,1,1,1]> (x, w, b) y = Relu(c) }"""

    def __init__(self):
        tensorrt.IPluginCreatorV3One.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = "ConvReluPlugin", "1", ""


tensorrt.get_plugin_registry().register_creator(Creator(), "")
tensorrt._faults.inject(milliseconds={"ConvReluPlugin*": 1.0, "conv*": 2.0, "relu*": 0.5})
''',
    "gen-data": '''
import numpy as np

from layerwise.common import TensorMetadata
from layerwise.json import save_json
from layerwise.tools import Tool
from layerwise.tools.args import DataLoaderArgs


class Numbers(Tool):
    """Write random numbers to a file."""

    def get_subscriptions(self):
        return [DataLoaderArgs()]

    def add_parser_args(self, parser):
        parser.add_argument("-o", "--output", required=True)
        parser.add_argument("--num-values", type=int, default=1)

    def run(self, args):
        wanted = TensorMetadata().add(name="data", dtype=np.float32, shape=(args.num_values,))
        save_json(list(self.arg_groups[DataLoaderArgs].get_data_loader(wanted)), dest=args.output)


Numbers().main()
''',
}
