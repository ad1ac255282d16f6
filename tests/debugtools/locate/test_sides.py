"""Locating against every kind of reference, in bounded memory, over several iterations, after a kill."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.comparing import run_compare
from support.locating import ORT, REFERENCE, Located, between, run_locate, spec_for
from support.models import conv_net, mlp

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, MissingDependency, UsageError
from layerwise._tool.backends.jobs.journal.events import EventWriter
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare import memory
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec

IMAGE = {"image": np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)}
OFF = msgspec.structs.replace(ORT, graph_optimization_level="disable")


def faulty(layer: int = 1, layers: int = 4, width: int = 16) -> onnx.ModelProto:
    """The mlp with one layer's weights 1 % too large."""
    model = mlp(width, layers)
    for tensor in model.graph.initializer:
        if tensor.name == f"w{layer}":
            array = numpy_helper.to_array(tensor) * np.float32(1.01)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return model


def saved(model: onnx.ModelProto, path: Path, marks: MarkSpec, iterations: int = 1) -> RunnerSpec:
    """Outputs of a model's own run in a file."""
    (path.parent / "good.onnx").write_bytes(model.SerializeToString())
    spec = CompareSpec(
        model=str(path.parent / "good.onnx"), runners=[OFF], marks=marks, save_outputs=str(path),
        feeds=FeedSpec(iterations=iterations),
    )  # fmt: skip
    run_compare(spec)
    return RunnerSpec(kind="saved", results=str(path))


def against(reference: RunnerSpec, model: onnx.ModelProto, folder: Path, **more: Any) -> Located:
    (folder / "suspect.onnx").write_bytes(model.SerializeToString())
    compare = CompareSpec(model=str(folder / "suspect.onnx"), runners=[ORT, reference], **more)
    return run_locate(LocateSpec(compare=compare))


@pytest.mark.parametrize("removed", ["w0", "w3"])
@pytest.mark.parametrize("broken", ["suspect", "reference"])
def test_a_tensor_that_nothing_makes_is_named(removed: str, broken: str, tmp_path: Path) -> None:
    model = mlp(layers=4)
    weights = [tensor for tensor in model.graph.initializer if tensor.name != removed]
    del model.graph.initializer[:]
    model.graph.initializer.extend(weights)
    (tmp_path / "reference.onnx").write_bytes((model if broken == "reference" else mlp(layers=4)).SerializeToString())
    reference = RunnerSpec(kind="onnxrt", model=str(tmp_path / "reference.onnx"))
    with pytest.raises(LayerwiseError, match=f"the {broken} fails.*'{removed}' is read, but nothing makes it"):
        against(reference, model if broken == "suspect" else mlp(layers=4), tmp_path)


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_saved_layers_are_a_reference(suffix: str, tmp_path: Path) -> None:
    golden = saved(mlp(layers=4), tmp_path / f"golden{suffix}", MarkSpec(everything=True))
    done = against(golden, faulty(), tmp_path)
    assert done.nodes == ["/fc1/MatMul"] and {row["mode"] for row in done.table()} == {"saved"}
    assert done.result["tensors"] == 12


def test_where_few_tensors_are_saved_regions_span_what_lies_between(tmp_path: Path) -> None:
    golden = saved(mlp(layers=4), tmp_path / "golden.json", MarkSpec(names=["h0", "h2"]))
    done = against(golden, faulty(), tmp_path)
    assert [row["tensor"] for row in done.table()] == ["h0", "h2", "y"]
    (found,) = done.suspects
    assert found["tensor"] == "h2" and "/fc1/MatMul" in [part["node"] for part in found["region"]]
    assert len(found["region"]) == 6 and done.row("y")["local"] < 1e-6
    only_outputs = saved(mlp(layers=4), tmp_path / "outputs.json", MarkSpec())
    (found,) = against(only_outputs, faulty(), tmp_path).suspects
    assert found["tensor"] == "y" and len(found["region"]) == 12


def test_another_backend_with_the_same_model_has_no_suspect(tmp_path: Path) -> None:
    done = against(REFERENCE, conv_net(), tmp_path)
    assert done.suspects == [] and len(done.table()) == 9
    assert max(row["local"] for row in done.table()) > 0
    wrong = msgspec.structs.replace(REFERENCE, model=str(tmp_path / "wrong.onnx"))
    (tmp_path / "wrong.onnx").write_bytes(faulty().SerializeToString())
    assert against(wrong, mlp(layers=4), tmp_path).nodes == ["/fc1/MatMul"]


def test_what_rounding_the_inputs_explains_is_ill_conditioned_and_no_kernel(tmp_path: Path) -> None:
    """A mean of values that cancel: both backends are right, and far apart."""
    values = np.random.default_rng(0).standard_normal((1, 4096)).astype(np.float32)
    values -= values.mean(dtype=np.float64).astype(np.float32)
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], name="cancels", keepdims=1),
        helper.make_node("Mul", ["sum", "sum"], ["y"], name="square"),
    ]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, n]) for name, n in (("x", 4096), ("y", 1))]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    np.savez(tmp_path / "feed.npz", x=values)
    done = against(REFERENCE, model, tmp_path, feeds=FeedSpec(files=[str(tmp_path / "feed.npz")]))
    row = done.row("sum")
    assert row["local"] > 1e-5 and row["diagnosis"] == "ill-conditioned"
    assert "kernel" not in [found["diagnosis"] for found in done.suspects]


def test_names_are_mapped(tmp_path: Path) -> None:
    good = mlp(layers=4)
    for node in good.graph.node:
        for names in (node.input, node.output):
            names[:] = [f"other/{name}" if name not in ("x", "y") and name[0] not in "wb" else name for name in names]
    inner = [name for i in range(4) for name in (f"m{i}", f"a{i}", f"h{i}")][:-1]  # the last one is y
    rename = {name: f"other/{name}" for name in inner}
    done = between(faulty(), good, tmp_path, rename=rename)
    assert done.nodes == ["/fc1/MatMul"] and len(done.table()) == 12
    assert done.row("m1")["tensor2"] == "other/m1" and "w1 is not the reference's" in done.suspects[0]["evidence"]
    (found,) = between(faulty(), good, tmp_path, align="names").suspects
    assert found["tensor"] == "y" and len(found["region"]) == 12
    assert between(faulty(), good, tmp_path).nodes == ["/fc1/MatMul"]


def test_nothing_in_common_and_wrong_sides_are_told(tmp_path: Path) -> None:
    other = conv_net()
    for node in other.graph.node:
        node.input[:] = ["x" if name == "image" else name for name in node.input]
    other.graph.input[0].CopyFrom(mlp().graph.input[0])
    with pytest.raises(UsageError, match="no tensor in common"):
        between(mlp(), other, tmp_path, align="names")
    with pytest.raises(LayerwiseError, match="the reference fails before"):
        between(mlp(), other, tmp_path)
    spec = spec_for(mlp(), mlp(), tmp_path)
    for runners in ([ORT], [ORT, ORT, ORT]):
        with pytest.raises(UsageError, match=f"two sides.*there are {len(runners)}"):
            run_locate(LocateSpec(compare=msgspec.structs.replace(spec.compare, runners=runners)))
    golden = saved(mlp(), tmp_path / "golden.json", MarkSpec())
    with pytest.raises(UsageError, match="the first side"):
        run_locate(LocateSpec(compare=msgspec.structs.replace(spec.compare, runners=[golden, ORT])))


def test_a_backend_that_is_not_there_is_no_suspect(tmp_path: Path) -> None:
    spec = spec_for(mlp(), mlp(), tmp_path).compare
    missing = msgspec.structs.replace(ORT, providers=["coreml"])
    for runners in ([missing, spec.runners[1]], [ORT, msgspec.structs.replace(missing, model=spec.runners[1].model)]):
        with pytest.raises(MissingDependency):
            run_locate(LocateSpec(compare=msgspec.structs.replace(spec, runners=runners)))
    (tmp_path / "ops.so").write_text("not a library")
    broken = msgspec.structs.replace(ORT, custom_ops=[str(tmp_path / "ops.so")])
    with pytest.raises(LayerwiseError, match=r"cannot run at all.*not a custom-op library"):
        run_locate(LocateSpec(compare=msgspec.structs.replace(spec, runners=[broken, spec.runners[1]])))


def test_a_reference_that_fails_is_told_with_its_node(tmp_path: Path) -> None:
    def model(index: int) -> onnx.ModelProto:
        nodes = [helper.make_node("Gather", ["x", "i"], ["y"], name="gather")]
        info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 8]) for name in ("x", "y")]
        weights = [numpy_helper.from_array(np.array([index, 0]), "i")]
        graph = helper.make_graph(nodes, "g", info[:1], info[1:], weights)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])

    with pytest.raises(LayerwiseError, match=r"the reference fails before 'y'.*gather"):
        between(model(0), model(9), tmp_path)


def test_the_worst_iteration_counts(tmp_path: Path) -> None:
    """A fault that only shows with some inputs."""

    def model(top: float) -> onnx.ModelProto:
        nodes = [
            helper.make_node("Clip", ["x", "low", "top"], ["c"], name="clip"),
            helper.make_node("Neg", ["c"], ["y"]),
        ]
        info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]
        weights = [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in (("low", 0), ("top", top))]
        graph = helper.make_graph(nodes, "g", info[:1], info[1:], weights)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])

    feeds = [{"x": np.full(4, value, np.float32)} for value in (0.5, 5.0, 9.0)]
    done = between(model(6), model(8), tmp_path, *feeds)
    assert [row["local"] for row in done.table() if row["tensor"] == "c"] == [0, 0, 0.25]
    assert done.nodes == ["clip"] and done.suspects[0]["iteration"] == 2


def test_small_segments_and_spilled_tensors_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = between(faulty(width=64), mlp(64, 4), tmp_path)
    monkeypatch.setattr(memory, "SEGMENT", 1)
    monkeypatch.setattr(memory, "_SMALLEST_SEGMENT", 1)
    monkeypatch.setattr(memory, "limits", lambda *_: memory.Limits(1, 0, 0))
    cut = between(faulty(width=64), mlp(64, 4), tmp_path)
    assert cut.table() == whole.table()
    drop = {"seconds", "peak_memory", "runners"}
    assert {k: v for k, v in cut.result.items() if k not in drop} == {
        k: v for k, v in whole.result.items() if k not in drop
    }
    assert not list((cut.folder / "artifacts").rglob("*.raw"))


def test_a_budget_gives_the_same_answer(tmp_path: Path) -> None:
    done = between(faulty(width=256), mlp(256, 4), tmp_path, memory_budget=1 << 20)
    assert done.nodes == ["/fc1/MatMul"]


def test_a_later_attempt_does_not_repeat_rows(tmp_path: Path) -> None:
    spec = spec_for(faulty(), mlp(layers=4), tmp_path)
    whole = run_locate(spec)
    copy = tmp_path / "job"
    shutil.copytree(whole.folder, copy)
    lines = (copy / "events.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"table":"layers"' in line][:7]
    (copy / "events.jsonl").write_text("".join([*[line for line in lines if '"state"' in line], *kept]))
    EventWriter(copy).write("state", state="running", attempt=2)
    again = run_locate(spec, copy, attempt=2)
    tensors = [row["tensor"] for row in again.table()]
    assert tensors == [row["tensor"] for row in whole.table()] and len(set(tensors)) == 12
    assert again.suspects == whole.suspects


def folded(weights: Array, scale: Array, shape: tuple[int, ...] = (1, 2, 4, 4)) -> onnx.ModelProto:
    """A convolution and a scale that onnxruntime folds into its weights."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("Mul", ["c", "s"], ["m"], name="scale"),
        helper.make_node("Relu", ["m"], ["r"], name="relu"),
        helper.make_node("Neg", ["r"], ["y"], name="neg"),
    ]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    tensors = [numpy_helper.from_array(array, name) for name, array in (("w", weights), ("s", scale))]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], tensors)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


def fused_overflow() -> onnx.ModelProto:
    """Weights that overflow when the scale is folded into them: unfused all is well."""
    return folded(np.full((2, 2, 1, 1), 1e20, np.float32), np.full((2, 1, 1), 1e20, np.float32))


def test_a_fault_of_the_optimisation_alone_is_found_in_the_executed_graph(tmp_path: Path) -> None:
    model = fused_overflow()
    np.savez(tmp_path / "feed.npz", x=np.full((1, 2, 4, 4), 1e-30, np.float32))
    feeds = FeedSpec(files=[str(tmp_path / "feed.npz")])
    done = against(OFF, model, tmp_path, feeds=feeds)
    assert {row["mode"] for row in done.table()} == {"executed"}
    assert done.suspects[0]["diagnosis"] in ("overflow", "nan")
    assert {"conv", "scale"} <= {part["node"] for part in done.suspects[0]["region"]}
    assert any("optimised graph" in text for text in done.texts("log"))


def test_where_unfused_nothing_is_wrong_but_outputs_differ_the_executed_graph_is_looked_at(tmp_path: Path) -> None:
    model = fused_overflow()
    np.savez(tmp_path / "feed.npz", x=np.full((1, 2, 4, 4), 1e-30, np.float32))
    feeds = FeedSpec(files=[str(tmp_path / "feed.npz")])
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "copy.onnx").write_bytes(model.SerializeToString())
    other = msgspec.structs.replace(OFF, model=str(tmp_path / "good" / "copy.onnx"))
    done = against(other, model, tmp_path, feeds=feeds)
    assert any("no node is at fault by itself" in text for text in done.texts("log"))
    assert done.suspects[0]["diagnosis"] in ("overflow", "nan") and done.result["passed"] is True


def test_the_executed_graph_is_looked_at_for_single_elements_of_an_output_too(tmp_path: Path) -> None:
    """One weight has few digits left when the scale is folded into it; it makes one element of many that is not 0."""
    weights, scale = np.zeros((2, 2, 1, 1), np.float32), np.float32([[[1000.5 * 2.0**-49]], [[4e-4]]])
    weights[0, 0], weights[1, 1] = 2.0**-100, 1
    shape = (1, 2, 512, 512)
    x = np.random.default_rng(0).random(shape, dtype=np.float32)
    x[0, 0], x[0, 0, 7, 7] = 0, 3e38
    np.savez(tmp_path / "feed.npz", x=x)
    (tmp_path / "good").mkdir()
    model = folded(weights, scale, shape)
    (tmp_path / "good" / "copy.onnx").write_bytes(model.SerializeToString())
    other = msgspec.structs.replace(OFF, model=str(tmp_path / "good" / "copy.onnx"))
    done = against(other, model, tmp_path, feeds=FeedSpec(files=[str(tmp_path / "feed.npz")]))
    assert any("no node is at fault by itself" in text for text in done.texts("log"))
    assert {"conv", "scale"} <= {part["node"] for part in done.suspects[0]["region"]}


def test_optimisation_that_only_rounds_has_no_suspect(tmp_path: Path) -> None:
    done = against(OFF, conv_net(), tmp_path)
    assert done.suspects == [] and {row["mode"] for row in done.table()} == {"executed"}
    assert "scores" in [row["tensor"] for row in done.table()]
