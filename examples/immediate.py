"""The same by functions that work at once: each step's result is at hand, and may be changed before the next."""

import numpy as np

from layerwise.backend.common import bytes_from_path
from layerwise.backend.trt import (
    TrtRunner,
    create_config,
    engine_bytes_from_network,
    engine_from_bytes,
    engine_from_network,
    network_from_onnx_path,
    save_engine,
)

builder, network, parser = network_from_onnx_path("identity.onnx")
last = network.get_output(0)
network.unmark_output(last)
layer = network.add_identity(last)
layer.get_output(0).name = "z"
network.mark_output(layer.get_output(0))

config = create_config(builder, network, builder_optimization_level=2)
print(config.builder_optimization_level, config.num_optimization_profiles, network.num_layers)
engine = engine_from_network((builder, network), config)
save_engine(engine, path="immediate.engine")

data = np.ones((1, 1, 2, 2), dtype=np.float32)
for each in (engine, engine_from_bytes(bytes_from_path("immediate.engine"))):
    with TrtRunner(each) as runner:
        print({name: array.ravel().tolist() for name, array in runner.infer({"x": data}).items()})
print(len(bytes(engine_bytes_from_network((builder, network)))) > 0)
