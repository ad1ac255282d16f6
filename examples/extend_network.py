"""Change a network and a config with TensorRT's own API between two loaders."""

import numpy as np
import tensorrt as trt

from layerwise import func
from layerwise.backend.trt import CreateConfig, EngineFromNetwork, NetworkFromOnnxPath, TrtRunner


@func.extend(NetworkFromOnnxPath("mlp.onnx"))
def load_network(builder, network, parser):
    output = network.get_output(0)
    network.unmark_output(output)
    activation = network.add_activation(output, trt.ActivationType.RELU)
    activation.get_output(0).name = "positive"
    network.mark_output(activation.get_output(0))


@func.extend(CreateConfig())
def load_config(config):
    config.set_flag(trt.BuilderFlag.DISABLE_TIMING_CACHE)


with TrtRunner(EngineFromNetwork(load_network, config=load_config)) as runner:
    outputs = runner.infer({"x": np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 16)})
    print({name: np.round(array, 3) for name, array in outputs.items()})
