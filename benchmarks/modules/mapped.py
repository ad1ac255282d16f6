"""How many operators of a module's fx graph find their tensor in an export whose names were shuffled, and how rightly.

Counted are operators that give floating tensors of more than 4 elements. Told apart are those of which the export holds
no tensor of the same values (folded into constants, fused), and further views of a tensor that has a counterpart: an
export writes `transpose, clone, view` as two nodes. Right is a counterpart with these values within 1e-4.
"""

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from support.faults import running
from support.faults.ours import run_action
from support.faults.running import Array

from benchmarks.faults.forms import renamed
from benchmarks.faults.truth import apart
from benchmarks.modules.zoo import MODULES, build, export
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.torch.graph import FxGraph
from layerwise._tool.backends.torch.runner import open_torch
from layerwise._tool.backends.torch_bridge import to_array
from layerwise._tool.debugtools.align.file import load_map
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec

_SCRIPT = "from benchmarks.modules.faults import made\n\n\ndef make():\n    return made({name!r}, 'clean', 0)\n"


_VIEWS = frozenset({"view", "reshape", "_unsafe_view", "transpose", "permute", "clone", "contiguous", "unsqueeze",
                    "squeeze", "flatten", "alias", "_to_copy", "t", "detach", "dropout", "type_as"})  # fmt: skip


def main(given: argparse.Namespace) -> bool:
    """Measure and print; whether 95 % are mapped, all of them rightly."""
    torch.set_num_threads(1)
    good = True
    with tempfile.TemporaryDirectory() as place:
        for name in given.only or MODULES:
            for exporter in given.exports:
                count = _counted(name, exporter, Path(place))
                there = count["operators"] - count["not in the export"]
                good &= not count["wrong"] and count["mapped"] + count["views"] >= 0.95 * there
                told = ", ".join(f"{key} {count[key]}" for key in ("operators", "not in the export", "mapped", "wrong",
                                                                   "certain", "views", "missed"))  # fmt: skip
                print(f"{name:10} {exporter:12} {told}", flush=True)
    return good


def _counted(name: str, exporter: str, place: Path) -> Counter[str]:
    model, other, script = place / "model.onnx", place / "other.onnx", place / "script.py"
    export(name, exporter, model)
    shuffled, _ = renamed(onnx.load(model))
    onnx.save(shuffled, other)
    script.write_text(_SCRIPT.format(name=name))
    _, inputs, keys = build(name)
    feed = {key: value.numpy() for key, value in zip(keys, inputs, strict=True)}
    save_feeds(place / "inputs.json", [feed])
    runners = [RunnerSpec(kind="onnxrt", model=str(other)), RunnerSpec(kind="torch", model=f"{script}:make")]
    spec = CompareSpec(
        model=str(other), runners=runners, marks=MarkSpec(everything=True), save_align=str(place / "map.json"),
        feeds=FeedSpec(files=[str(place / "inputs.json")]),
    )  # fmt: skip
    run_action("compare", spec, "layers")
    pairs = {pair.other: pair for pair in load_map(place / "map.json").pairs}
    return _judged(pairs, *_operators(script), running.all_tensors(shuffled, feed))


def _operators(script: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """What each operator of the module gives, by the name of its tensor; the tensor that it is a view of, if any."""
    runner: Any = open_torch(RunnerSpec(kind="torch", model=f"{script}:make"), Loadable(), name="module")
    traced = runner.trace(runner.example)
    env = {name: traced.put(name, array) for name, array in runner.example.items()}
    for node in traced.graph.nodes:
        with torch.no_grad():
            env.update(zip(node.outputs, traced.call(node.name, env), strict=True))
    made = {name for node in traced.graph.nodes for name in node.outputs if name}
    held = {name: to_array(value) for name, value in env.items() if name in made and isinstance(value, torch.Tensor)}
    return held, _roots(traced.graph)


def _roots(graph: FxGraph) -> dict[str, str]:
    """Of each tensor that is reshaped, permuted or copied from another the first in the row."""
    roots: dict[str, str] = {}
    for node in graph.nodes:
        if node.op.partition(".")[2].split(".")[0] in _VIEWS:
            roots[node.outputs[0]] = roots.get(node.inputs[0], node.inputs[0])
    return roots


def _judged(
    pairs: dict[str, Any], mine: dict[str, Array], roots: dict[str, str], theirs: dict[str, Array]
) -> Counter[str]:
    found = {roots.get(name, name) for name in pairs}
    by_size: dict[int, list[str]] = {}
    for name, array in theirs.items():
        if array.dtype.kind == "f":
            by_size.setdefault(array.size, []).append(name)
    count = Counter[str]()
    for name, array in mine.items():
        if array.dtype.kind != "f" or array.size <= 4:
            continue
        count["operators"] += 1
        pair = pairs.get(name)
        if pair is not None and pair.other == name:
            count["mapped"] += 1
            count["certain"] += pair.confidence == "certain"
            count["wrong"] += not _alike(array, theirs.get(pair.tensor))
        elif any(_alike(array, theirs[other]) for other in by_size.get(array.size, ())):
            count["views" if roots.get(name, name) in found else "missed"] += 1
        else:
            count["not in the export"] += 1
    return count


def _alike(mine: Array, theirs: Array | None) -> bool:
    if theirs is None or theirs.size != mine.size:
        return False
    with np.errstate(all="ignore"):
        one, other = (np.sort(each.ravel().astype(np.float64)) for each in (mine, theirs))
        shown = np.abs(one) < 1e30, np.abs(other) < 1e30
    return bool(apart(one[shown[0]], other[shown[1]]) <= 1e-4) if shown[0].sum() == shown[1].sum() else False
