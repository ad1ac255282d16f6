"""Small matrices: real models with a planted fault, waiting cells, and one that crashes."""

from pathlib import Path

import msgspec
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.debugtools.matrix.spec import CellSpec, MatrixSpec

DEPTH = 4


def layers(seed: int, *, fault: bool = False, size: int = 8) -> onnx.ModelProto:
    """A chain of MatMul and Tanh; with `fault` one weight is another."""
    rng = np.random.default_rng(seed)
    nodes, weights, last = [], [], "x"
    for i in range(DEPTH):
        weight = rng.standard_normal((size, size)).astype(np.float32) / size**0.5
        if fault and i == DEPTH // 2:
            weight[0, 0] += 0.5
        weights.append(numpy_helper.from_array(weight, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"], name=f"matmul{i}"))
        nodes.append(helper.make_node("Tanh", [f"m{i}"], [f"t{i}"], name=f"tanh{i}"))
        last = f"t{i}"
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "chain", [value("x", TensorProto.FLOAT, [2, size])],
                              [value(last, TensorProto.FLOAT, [2, size])], weights)  # fmt: skip
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def write_sample(folder: Path, models: int = 12) -> Path:
    """Models × 3 sides × 2 feeds; the third side holds a third of the models against one with another weight."""
    folder.mkdir(parents=True, exist_ok=True)
    named = []
    for seed in range(models):
        onnx.save(layers(seed), folder / f"net{seed}.onnx")
        onnx.save(layers(seed, fault=seed % 3 == 0), folder / f"old{seed}.onnx")
        named.append(f'net{seed} = "net{seed}.onnx"')
    text = "\n".join([
        'on-failure = ["locate"]',
            "[models]", *named,
        "[sides]",
        'plain = ["--onnxrt", "--runner", "onnxrt,graph_optimization_level=disable"]',
        'reference = ["--onnxrt", "--onnx"]',
        'former = ["--onnxrt", "--reference-model", "old{name}.onnx"]'.replace("{name}", "{number}"),
        "[feeds]", "one = { seed = 1 }", "two = { seed = 2 }",
        "[actions]", 'run = ["--mark-all"]',
    ])  # fmt: skip
    path = folder / "sample.toml"
    path.write_text(text.replace("old{number}.onnx", "{folder}/old-of-{name}.onnx"))
    for seed in range(models):
        (folder / f"old{seed}.onnx").rename(folder / f"old-of-net{seed}.onnx")
    return path


def waiting(
    count: int, seconds: float, *, crashes: int = 0, cluster: str = "", losses: int = 1000, file: str = ""
) -> MatrixSpec:
    """Cells that wait, in ten steps, and take no CPU slot; `crashes` of them end by a signal."""
    cells = [_cell(f"w{i}", "test_rows", {"n": 10, "pause": seconds / 10, "i": i}) for i in range(count)]
    cells += [_cell(f"crash{i}", "test_segfault", {"i": i}) for i in range(crashes)]
    return MatrixSpec(name="waiting", file=file or "waiting.toml", cells=cells, cluster=cluster, losses=losses)


def _cell(name: str, action: str, params: dict[str, float]) -> CellSpec:
    job = JobSpec(action=action, params=params, title=name, cpus=0)
    return CellSpec(model=name, side="", feed="", action="wait", job=job)


def matrix_job(spec: MatrixSpec) -> JobSpec:
    """The job of a matrix that no command line was made from."""
    return JobSpec(action="matrix", params=msgspec.to_builtins(spec), title=spec.name, cpus=0)
