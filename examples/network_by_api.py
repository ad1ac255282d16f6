"""A network made with TensorRT's API, from nothing: y = x + 1."""

import numpy as np
import tensorrt as trt

from layerwise import func
from layerwise.backend.trt import CreateNetwork, EngineFromNetwork, TrtRunner


@func.extend(CreateNetwork())
def create_network(builder, network):
    x = network.add_input(name="x", shape=(2, 4), dtype=trt.float32)
    ones = network.add_constant((2, 4), np.ones((2, 4), dtype=np.float32)).get_output(0)
    y = network.add_elementwise(x, ones, op=trt.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    network.mark_output(y)


with TrtRunner(EngineFromNetwork(create_network)) as runner:
    data = np.arange(8, dtype=np.float32).reshape(2, 4)
    outputs = runner.infer({"x": data})
    assert np.array_equal(outputs["y"], data + 1)
    print(outputs["y"].tolist())
