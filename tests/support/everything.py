"""Importing this imports all that layerwise may import, which a process does before others are forked from it, and has
onnxruntime make its tables of operators, which its first session does.
"""

import importlib
import pkgutil
from contextlib import suppress

LIBRARIES = ("onnx", "onnxruntime", "textual.app", "textual.drivers.linux_driver")

for library in LIBRARIES:
    importlib.import_module(library)
for module in pkgutil.walk_packages(importlib.import_module("layerwise").__path__, "layerwise."):
    if not module.name.endswith("__main__"):
        with suppress(Exception):  # whoever needs it is told
            importlib.import_module(module.name)


def _first_session() -> None:
    import onnx
    import onnxruntime
    from onnx import helper

    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "first", [x], [y])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


_first_session()
