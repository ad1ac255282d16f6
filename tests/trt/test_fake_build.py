"""The fake TensorRT builds, saves, loads and runs, and answers mistakes like the real one."""

from collections.abc import Callable

import pytest
from trt.scenario import MODEL

RunIn = Callable[..., str]


def test_an_onnx_model_is_built_saved_loaded_and_gives_onnxruntimes_numbers(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
import onnxruntime
x = np.random.default_rng(1).normal(size=(3, 3, 8, 8)).astype("f")
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
open("model.plan", "wb").write(built())
y = run(loaded(open("model.plan", "rb").read()).create_execution_context(), x)
print(np.abs(y - session.run(None, {"x": x})[0]).max() < 1e-5)
"""
    )
    assert said.split() == ["True"]


def test_a_dynamic_input_without_a_profile_fails_like_the_real_builder(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
builder, network, _, _ = parsed()
print(builder.build_serialized_network(network, builder.create_builder_config()), logger.lines[-1])
"""
    )
    assert said.startswith("None ('ERROR'") and "no optimization profile has been defined" in said


def test_a_shape_outside_the_profile_is_rejected(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
context = loaded().create_execution_context()
print(context.set_input_shape("x", (9, 3, 8, 8)), context.set_input_shape("x", (4, 3, 8, 8)), logger.lines[-1][1])
"""
    )
    assert said.startswith("False True") and "does not satisfy any optimization profile" in said


@pytest.mark.parametrize("call", ["builder.create_network('x')", "network.add_identity(1)", "config.flags = 'FP16'"])
def test_wrong_arguments_are_type_errors(in_fake: RunIn, call: str) -> None:
    said = in_fake(
        MODEL
        + f"""
builder, network, _, _ = parsed()
config = builder.create_builder_config()
try:
    {call}
except TypeError as error:
    print(str(error).splitlines()[0])
"""
    )
    assert "incompatible function arguments" in said
