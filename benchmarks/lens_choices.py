"""Choices with a known culprit, beside every subset of the nodes: `python -m benchmarks.lens_choices`.

A small network of 13 nodes that can be quantised (a table of embeddings, blocks of attention and of products, a head)
gets a plant: a channel of outliers, a saturated softmax, a first or last layer that all depends on, rows of a table, a
weight of outliers. Of each, in INT8, INT4 and MXFP4, the cheapest set for half of the error of all nodes is asked
for, and compared with the best of all 8192 subsets: the cheapest that keeps the bound on the switchboard and, where
ONNX has the format's operators, as a mixed model too.

A run is what one choice of low nodes does to all inputs, on the switchboard or as a mixed model. Keeping one node after
another takes n + (n - 1) + … of them, one for each node that could be the next, until the bound is kept; that it then
asks nowhere whether a node could be left out again is not counted against it.
"""

import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from msgspec import Struct
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from support.faults.ours import run_action

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.onnxrt.saturation import SETTING
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.lens.lens import Lens
from layerwise._tool.debugtools.search.lens.spec import Bound, LensSpec, Rounding
from layerwise._tool.debugtools.search.lens.writing import is_real, mixed_model

WIDTH, WORDS, LONG = 32, 64, 12
ORT = RunnerSpec(kind="onnxrt", threads=1, session_config={SETTING: "1"})  # so that kernels saturate on no machine
PLANTS = ("none", "outlier channel", "saturated softmax", "first layer", "last layer", "embedding", "outlier weight")
Weights = dict[str, NDArray[np.float32]]


def network(plant: str, seed: int = 0) -> onnx.ModelProto:
    """The network with a plant."""
    rng = np.random.default_rng(seed)
    sizes = {"table": (WORDS, WIDTH), "first": (WIDTH, WIDTH), "last": (WIDTH, 8)}
    sizes |= {f"{part}{b}": (WIDTH, WIDTH) for b in range(2) for part in ("q", "k", "u")}
    weights: Weights = {
        name: (rng.standard_normal(size) / np.sqrt(size[0])).astype(np.float32) for name, size in sizes.items()
    }
    weights["table"] *= np.float32(np.sqrt(WORDS))
    _plant(weights, plant)
    made = helper.make_node
    nodes = [made("Gather", ["table", "ids"], ["e"], "embed"), made("MatMul", ["e", "first"], ["x0"], "first")]
    for b in range(2):
        x, to = f"x{b}", f"x{b + 1}"
        nodes += [
            made("MatMul", [x, f"q{b}"], [f"a{b}"], f"query{b}"), made("MatMul", [x, f"k{b}"], [f"b{b}"], f"key{b}"),
            made("Transpose", [f"b{b}"], [f"t{b}"], f"turn{b}", perm=[0, 2, 1]),
            made("MatMul", [f"a{b}", f"t{b}"], [f"s{b}"], f"scores{b}"),
            made("Mul", [f"s{b}", "scale"], [f"d{b}"], f"scaled{b}"),
            made("Softmax", [f"d{b}"], [f"p{b}"], f"soft{b}", axis=-1),
            made("MatMul", [f"p{b}", x], [f"m{b}"], f"mix{b}"),
            made("MatMul", [f"m{b}", f"u{b}"], [f"o{b}"], f"out{b}"), made("Add", [f"o{b}", x], [to], f"sum{b}"),
        ]  # fmt: skip
    nodes.append(made("MatMul", ["x2", "last"], ["y"], "last"))
    scale = np.asarray(8.0 if plant == "saturated softmax" else 0.2, np.float32)
    stored = [numpy_helper.from_array(array, name) for name, array in {**weights, "scale": scale}.items()]
    graph = helper.make_graph(
        nodes, plant, [helper.make_tensor_value_info("ids", TensorProto.INT64, [2, LONG])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, LONG, 8])], stored,
    )  # fmt: skip
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def _plant(weights: Weights, plant: str) -> None:
    if plant == "outlier channel":  # of what the second block reads; its readers make nothing of it
        weights["u0"][:, 3] *= 60
        for name in ("q1", "k1", "u1", "last"):
            weights[name][3] /= 60
    elif plant == "first layer":
        weights["first"][5] *= 40
        weights["table"][:, 5] /= 40
    elif plant == "last layer":
        weights["last"][:, 2] *= 30
        weights["last"][7, 2] *= 30
    elif plant == "embedding":
        weights["table"][3] *= 80
    elif plant == "outlier weight":
        weights["k0"][4, 9] = 12


class Case(Struct, frozen=True):
    """cost, best: of what is chosen and of the best of all subsets, as shares of all; runs: that the choice took;
    single: that one node after another takes.
    """

    line: str
    cost: float
    best: float
    runs: int
    single: int

    @property
    def larger(self) -> bool:
        return self.cost > self.best * (1 + 1e-6) + 1e-9


def holds(lens: Lens, low: list[int], bound: float) -> bool:
    """Whether a set keeps the bound, as a mixed model too."""
    if lens.measured(low).worst > bound or not is_real(lens):
        return lens.measured(low).worst <= bound
    model = Loadable(data=mixed_model(lens, low).proto().SerializeToString(), folder=lens.model.file.folder)
    with open_runner(ORT, model) as runner:
        return lens.errors_of([runner.infer(feed).outputs for feed in lens.feeds]).worst <= bound


def case(plant: str, to: str, folder: Path) -> Case:
    """One choice, beside all subsets."""
    path = folder / "model.onnx"
    onnx.save(network(plant), path)
    feed: dict[str, Any] = {"ids": np.random.default_rng(1).integers(0, WORDS, (2, LONG))}
    save_feeds(folder / "inputs.json", [feed])
    few = to == "int4"
    rounding = Rounding(to=to, activations=not few, weight_scales="block" if few else "channel", block=16)  # type: ignore[arg-type]
    lens = Lens(Model(str(path), ModelOptions()), ORT, rounding, [feed])
    lens.begin()
    order = [one.i for one in lens.candidates]
    bound = lens.measured(order).worst / 2
    compare = CompareSpec(model=str(path), runners=[ORT], feeds=FeedSpec(files=[str(folder / "inputs.json")]))
    done = run_action("debug_lens", LensSpec(compare=compare, rounding=rounding, bound=Bound(value=bound)), "effects")
    result, costs = done.result, {row["i"]: row["cost"] for row in done.rows}
    whole = sum(costs.values())
    sets = (some for size in range(len(order) + 1) for some in itertools.combinations(order, size))
    best, least = (), whole
    for kept in sorted(sets, key=lambda some: sum(costs[i] for i in some)):
        cost = sum(costs[i] for i in kept)
        if cost >= least:
            break
        if holds(lens, [i for i in order if i not in kept], bound):
            best, least = kept, cost
    names = ", ".join(node["node"] for node in result["kept"])
    single = sum(len(order) - k for k in range(len(result["kept"])))
    line = (f"{plant:18} {to:6} {len(order)} nodes, keeps {names or 'none'}: {result['cost'] / whole:.1%} of the cost, "
            f"best of all subsets {least / whole:.1%} ({len(best)} nodes); proved {result['proved'] / bound:.3f}; "
            f"{result['runs']} runs ({len(order)} nodes, all at once, {result['runs'] - len(order) - 1} sets and mixed "
            f"models), one at a time {single}")  # fmt: skip
    lens.close()
    return Case(line, result["cost"] / whole, least / whole, result["runs"], single)


def main() -> None:
    """All cases; a line each."""
    cases = list[Case]()
    for plant in PLANTS:
        for to in ("int8", "int4", "mxfp4"):
            with tempfile.TemporaryDirectory() as folder:
                cases.append(case(plant, to, Path(folder)))
            print(("LARGER " if cases[-1].larger else "") + cases[-1].line, flush=True)
    larger, runs, single = (sum(getattr(each, name) for each in cases) for name in ("larger", "runs", "single"))
    print(f"{len(cases)} cases, {larger} larger than the best of all subsets; {runs} runs, one at a time {single}")


if __name__ == "__main__":
    main()
