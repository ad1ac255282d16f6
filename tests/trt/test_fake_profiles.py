"""Profiles, contexts, allocation strategies and weight streaming of the fake."""

from collections.abc import Callable

from trt.scenario import MODEL

RunIn = Callable[..., str]
TWO = (
    MODEL
    + """
builder, network, _, _ = parsed()
config = configured(builder, [(1, 3, 8, 8)] * 3, [(2, 3, 8, 8), (4, 3, 8, 8), (8, 3, 8, 8)])
engine = loaded(bytes(builder.build_serialized_network(network, config)))
first, second = engine.create_execution_context(), engine.create_execution_context()
"""
)


def test_each_context_has_its_own_profile_and_shapes(in_fake: RunIn) -> None:
    said = in_fake(
        TWO
        + """
print(engine.num_optimization_profiles, [tuple(s) for s in engine.get_tensor_profile_shape("x", 1)])
assert second.set_optimization_profile_async(1, 0)
print(first.active_optimization_profile, second.active_optimization_profile)
print(first.set_input_shape("x", (8, 3, 8, 8)), second.set_input_shape("x", (8, 3, 8, 8)))
print(run(second, np.ones((8, 3, 8, 8), "f")).shape, run(first, np.ones((1, 3, 8, 8), "f")).shape)
try:
    second.set_optimization_profile_async(2, 0)
except RuntimeError as error:
    print(error, logger.lines[-1][1])
"""
    )
    assert said.splitlines()[:4] == [
        "2 [(2, 3, 8, 8), (4, 3, 8, 8), (8, 3, 8, 8)]",
        "0 1",
        "False True",
        "(8, 4, 6, 6) (1, 4, 6, 6)",
    ]
    assert said.splitlines()[4].startswith("Error in set optimization profile async.") and "Profile index 2" in said


def test_the_injected_wrong_profile_starts_a_context_in_the_last_one(in_fake: RunIn) -> None:
    fault = '{"wrong_profile": true}'
    said = in_fake(TWO + "print(first.active_optimization_profile)", LAYERWISE_FAKE_TRT_FAULTS=fault)
    assert said == "1\n"


def test_a_context_without_memory_needs_user_memory_to_run(in_fake: RunIn) -> None:
    said = in_fake(
        TWO
        + """
strategy = trt.ExecutionContextAllocationStrategy.USER_MANAGED
context = engine.create_execution_context(strategy)
x, y = np.ones((1, 3, 8, 8), "f"), np.zeros((1, 4, 6, 6), "f")
context.set_input_shape("x", x.shape)
context.set_tensor_address("x", x.ctypes.data), context.set_tensor_address("y", y.ctypes.data)
print(context.execute_async_v3(0), "user managed" in logger.lines[-1][1])
_, block = cudart.cudaMalloc(engine.device_memory_size_v2)
context.set_device_memory(block, engine.device_memory_size_v2)
print(context.execute_async_v3(0))
config = engine.create_runtime_config()
config.set_execution_context_allocation_strategy(strategy)
print(engine.create_execution_context(config).get_runtime_config().get_execution_context_allocation_strategy().name)
"""
    )
    assert said.split() == ["False", "True", "True", "USER_MANAGED"]


def test_too_little_device_memory_gives_no_context_and_no_allocation(in_fake: RunIn) -> None:
    said = in_fake(
        TWO + "print(first, 'OutOfMemory' in logger.lines[-1][1], cudart.cudaMalloc(2000)[0].name)",
        LAYERWISE_FAKE_TRT_FAULTS='{"device_memory": 1000}',
    )
    assert said.split() == ["None", "True", "cudaErrorMemoryAllocation"]


def test_weight_streaming_requires_an_engine_built_for_it(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
builder, network, _, _ = parsed()
config = configured(builder)
config.set_flag(trt.BuilderFlag.WEIGHT_STREAMING)
engine = loaded(bytes(builder.build_serialized_network(network, config)))
automatic = engine.get_weight_streaming_automatic_budget()
print(engine.streamable_weights_size, engine.weight_streaming_budget_v2, automatic)
engine.weight_streaming_budget_v2 = 100
print(engine.weight_streaming_budget_v2, run(engine.create_execution_context(), np.ones((1, 3, 8, 8), "f")).shape)
for which, budget in ((engine, 10**9), (loaded(), 1)):
    try:
        which.weight_streaming_budget_v2 = budget
    except RuntimeError:
        print("refused", which.streamable_weights_size)
"""
    )
    assert said.splitlines() == ["432 432 216", "100 (1, 4, 6, 6)", "refused 432", "refused 0"]
