"""`convert -o x.engine`, `run --trt` and `run --trt-engine`: the real program over the fake TensorRT."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.cli import Done, layerwise_on_fake
from trt.conftest import ON_11

OPERATORS = ("Abs", "Neg", "Tanh", "Softplus", "Exp", "Sigmoid")
BAD = {"layers": ["softplus*"], "probability": 1.0, "scale": 3.0}


@pytest.fixture
def go(fake_trt: dict[str, str], tmp_path: Path) -> Callable[..., Done]:
    weights = numpy_helper.from_array(np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype("f"), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], "conv"), helper.make_node("Relu", ["c"], ["y"], "relu")]
    inputs = [helper.make_tensor_value_info("x", 1, ["N", 3, 8, 8])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", 1, ["N", 4, 6, 6])], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    chain = [helper.make_node(op, [f"t{i}"], [f"t{i + 1}"], op.lower()) for i, op in enumerate(OPERATORS)]
    ends = [helper.make_tensor_value_info(name, 1, ["N", 8]) for name in ("t0", f"t{len(chain)}")]
    graph = helper.make_graph(chain, "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "c.onnx")

    def run(*words: str, **faults: object) -> Done:
        injected = {"LAYERWISE_FAKE_TRT_FAULTS": json.dumps(faults)}
        return layerwise_on_fake(*words, cwd=tmp_path, env={**fake_trt, **injected})

    return run


SHAPES = ("--trt-min-shapes", "x:[1,3,8,8]", "--trt-opt-shapes", "x:[2,3,8,8]", "--trt-max-shapes", "x:[4,3,8,8]")


def test_an_engine_is_converted_run_and_compared(go: Callable[..., Done], tmp_path: Path) -> None:
    made = go("convert", "m.onnx", "-o", "m.engine", *SHAPES)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "m.engine").stat().st_size > 0 and "Saving engine to: m.engine" in made.stdout
    both = go("run", "m.onnx", "--onnxrt", "--trt-engine", "m.engine", "--input-shapes", "x:[3,3,8,8]", "--json")
    assert both.returncode == 0, both.stdout + both.stderr
    alone = go("run", "m.engine", "--trt", "--input-shapes", "x:[4,3,8,8]", "--save-outputs", "o.json")
    assert alone.returncode == 0, alone.stderr
    outside = go("run", "m.engine", "--trt", "--input-shapes", "x:[5,3,8,8]")
    assert outside.returncode == 2 and "does not fit profile 0" in outside.stderr


def test_run_builds_and_compares_every_tensor(go: Callable[..., Done]) -> None:
    done = go("run", "m.onnx", "--onnxrt", "--trt", *SHAPES, "--mark-all")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 tensors compared, 0 failed" in done.stdout


@ON_11
def test_a_bad_tactic_is_located_and_reduced_to_one_node(go: Callable[..., Done], tmp_path: Path) -> None:
    plain = go("run", "c.onnx", "--trt", "--onnxrt", bad_tactic=BAD)
    assert plain.returncode == 1 and "Mismatched outputs" in plain.stdout + plain.stderr
    found = go("debug", "locate", "c.onnx", "--trt", "--onnxrt", bad_tactic=BAD)
    assert "1 suspect among 6 tensors" in found.stdout + found.stderr and "softplus" in found.stdout
    reduced = go("debug", "reduce", "c.onnx", "--trt", "--onnxrt", "-o", "red.onnx", bad_tactic=BAD)
    assert "One culprit: softplus (Softplus)" in reduced.stdout
    assert [node.op_type for node in onnx.load(tmp_path / "red.onnx").graph.node] == ["Softplus"]


def test_a_stripped_engine_is_refitted_from_the_model(go: Callable[..., Done]) -> None:
    assert go("convert", "m.onnx", "-o", "s.engine", *SHAPES, "--strip-plan", "--refittable").returncode == 0
    done = go("run", "m.onnx", "--trt-engine", "s.engine", "--onnxrt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "taken from the model" in done.stdout
    alone = go("run", "s.engine", "--trt")
    assert alone.returncode == 1 and "--strip-plan" in alone.stderr


def test_half_inputs_and_outputs_are_compared_with_the_models(go: Callable[..., Done]) -> None:
    half = ("--tensor-dtypes", "t0:float16", "t6:float16", "--atol", "1e-2", "--rtol", "1e-2")
    for shapes in (("--trt-min-shapes", "t0:[1,8]"), ()):
        done = go("run", "c.onnx", "--onnxrt", "--trt", *half, *shapes)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "{t6 [dtype=float16" in done.stdout and "cast from float32 to float16" in done.stdout
