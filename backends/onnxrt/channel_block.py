"""How many channels onnxruntime's convolutions on this CPU keep innermost in their own layout, NCHWc."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec

_CHANNELS = 24  # whole blocks of 8; of 16 they are rounded up
_BLOCKS = {24: 8, 32: 16}


@cache
def channel_block() -> int:
    """8 or 16, as the processor is; 0 where there is no such layout. Found by optimising one convolution, once a
    process. LayerwiseError where onnxruntime writes no optimised graph.
    """
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    from layerwise._tool.backends.onnxrt.runner import optimized_model

    weight = numpy_helper.from_array(np.ones((_CHANNELS, _CHANNELS, 1, 1), np.float32), "w")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, _CHANNELS, 4, 4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "block", ends[:1], ends[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with TemporaryDirectory() as folder:
        spec = RunnerSpec(kind="onnxrt", threads=1)
        dumped = optimized_model(spec, Loadable(data=model.SerializeToString()), Path(folder, "block.onnx"))
        assert dumped.path is not None
        found = onnx.load(dumped.path, load_external_data=False).graph
    own = {node.input[1] for node in found.node if node.op_type == "Conv" and node.domain == "com.microsoft.nchwc"}
    return next((_BLOCKS.get(tensor.dims[0], 0) for tensor in found.initializer if tensor.name in own), 0)
