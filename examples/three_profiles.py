"""One engine with three profiles: single images, batches of any size, and large batches offline."""

import numpy as np

from layerwise.backend.trt import (
    CreateConfig,
    Profile,
    TrtRunner,
    engine_from_network,
    network_from_onnx_path,
    save_engine,
)

profiles = [
    Profile().add("x", min=(1, 3, 28, 28), opt=(1, 3, 28, 28), max=(1, 3, 28, 28)),
    Profile().add("x", min=(1, 3, 28, 28), opt=(4, 3, 28, 28), max=(32, 3, 28, 28)),
    Profile().add("x", min=(128, 3, 28, 28), opt=(128, 3, 28, 28), max=(128, 3, 28, 28)),
]
print(profiles[1]["x"].opt)
engine = engine_from_network(network_from_onnx_path("dynamic_identity.onnx"), config=CreateConfig(profiles=profiles))
save_engine(engine, "dynamic_identity.engine")


def check(runner, batch):
    data = np.random.default_rng(batch).random((batch, 3, 28, 28), dtype=np.float32)
    outputs = runner.infer({"x": data})
    assert np.array_equal(outputs["y"], data)
    print(runner.name, outputs["y"].shape)


low_latency = TrtRunner(engine, name="low latency", optimization_profile=0)
dynamic_batching = TrtRunner(engine, name="dynamic batching", optimization_profile=1)
offline = TrtRunner(engine, name="offline", optimization_profile=2)
with low_latency, dynamic_batching, offline:
    check(low_latency, 1)
    for batch in (2, 16, 1, 32):
        check(dynamic_batching, batch)
    check(offline, 128)
    dynamic_batching.set_profile(0)
    check(dynamic_batching, 1)
