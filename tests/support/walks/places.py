"""Models to walk over, and workspaces with jobs in them, copied for each walk."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from support.bench import chain_pair
from support.bursts.place import Place
from support.cli import fork_of
from support.edit_models import nested_model, varied_model
from support.hostile import hostile_names
from support.models import mlp, save
from support.quantised import modelopt

from layerwise._tool.surgery.demo import make_demo

FLOAT = TensorProto.FLOAT


def _functions(path: Path) -> Path:
    """Functions that call functions, one of them twice, one with an If inside, one with an attribute."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    value = helper.make_tensor_value_info("t", FLOAT, None)
    ways = {
        f"{way}_branch": helper.make_graph([helper.make_node(op, ["d"], ["t"], f"{way} {op}")], way, [], [value])
        for way, op in (("then", "Relu"), ("else", "Neg"))
    }
    inner = helper.make_function("my", "Inner", ["a"], ["c"], [
        helper.make_node("Add", ["a", "a"], ["d"], "inner.add"),
        helper.make_node("Identity", ["d"], ["c"], "inner.identity")], opsets)  # fmt: skip
    outer = helper.make_function("my", "Outer", ["a", "on"], ["c"], [
        helper.make_node("Inner", ["a"], ["d"], "outer.call", domain="my"),
        helper.make_node("If", ["on"], ["e"], "outer.if", **ways),
        helper.make_node("Inner", ["e"], ["c"], "", domain="my")], opsets)  # fmt: skip
    nodes = [
        helper.make_node("Outer", ["x", "on"], ["h"], "first", domain="my"),
        helper.make_node("Inner", ["h"], ["g"], "second", domain="my"),
        helper.make_node("Outer", ["g", "on"], ["y"], "third", domain="my"),
    ]
    ends = [
        helper.make_tensor_value_info("x", FLOAT, [2, 3]),
        helper.make_tensor_value_info("on", TensorProto.BOOL, []),
    ]
    graph = helper.make_graph(nodes, "calls", ends, [helper.make_tensor_value_info("y", FLOAT, [2, 3])])
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=[inner, outer], ir_version=9), path)
    return path


def _hostile(path: Path) -> Path:
    """Names that try to steer terminals, of no width, of two cells, very long, empty: of nodes, tensors, dimensions."""
    names = hostile_names(60, 3)
    nodes, tensor = [], "x\x1b[2J"
    for k, name in enumerate(names):
        made = f"{name}\n{k}"
        nodes.append(helper.make_node("Relu" if k % 3 else "Tanh", [tensor], [made], "" if k % 7 == 3 else name))
        tensor = made
    ends = [helper.make_tensor_value_info(name, FLOAT, [1, "n\x1b[31m"]) for name in ("x\x1b[2J", tensor)]
    graph = helper.make_graph(nodes, "[red]g\x07", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def _empty(path: Path) -> Path:
    """A graph without nodes, whose input is its output."""
    end = helper.make_tensor_value_info("x", FLOAT, [2])
    graph = helper.make_graph([], "empty", [end], [end])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def _single(path: Path) -> Path:
    """One node without a name."""
    ends = [helper.make_tensor_value_info(name, FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "single", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


Pair = tuple[Path, Path | None]


def _twice(make: Callable[[Path], Path], name: str) -> Callable[[Path], Pair]:
    def made(folder: Path) -> Pair:
        path = make(folder / f"{name}.onnx")
        return path, path

    return made


def _demo(folder: Path) -> Pair:
    made = make_demo(folder)
    return made.fp16, made.fp32


def _quantised(folder: Path) -> Pair:
    """Q and DQ before its products, against the float original."""
    model = mlp(layers=2)
    feed = {"x": np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)}
    return save(modelopt(model, feed), folder / "int8.onnx"), save(model, folder / "float.onnx")


def _chain(folder: Path) -> Pair:
    good, wrong = chain_pair(folder)
    return wrong, good


MAKERS: dict[str, Callable[[Path], Pair]] = {
    "chain": _chain, "nested": _twice(nested_model, "nested"), "functions": _twice(_functions, "functions"),
    "hostile": _twice(_hostile, "hostile"), "empty": _twice(_empty, "empty"), "quantised": _quantised,
    "varied": _twice(varied_model, "varied"), "single": _twice(_single, "single"), "demo": _demo,
}  # fmt: skip
"""By name: makers of a model and of what it is compared with."""


def prepare(name: str, folder: Path, *, jobs: bool) -> Place:
    """Make a model; with jobs, compare it, locate and measure in its workspace."""
    (folder / "models").mkdir(parents=True)
    model, other = MAKERS[name](folder / "models")
    place = Place(name, model, folder / "place")
    place.work.mkdir(parents=True)
    place.home.mkdir()
    if jobs:
        sides = ("--runner", "onnxrt", "--runner", f"onnxrt,model={other or model}")
        env = {**os.environ, "LAYERWISE_HOME": str(place.home), "LAYERWISE_LEASES": str(place.home / "leases")}
        for words in (("run", model, *sides, "--mark-all", "--quiet"), ("debug", "locate", model, *sides, "--quiet"),
                      ("bench", model, "--duration", "0", "--iterations", "3", "--quiet")):  # fmt: skip
            fork_of("layerwise", words, place.work, env)
    return place
