"""A `--check` command for Polygraphy's `debug reduce`: the same cut of two models on onnxruntime, element by element.

    python two_sides.py GOOD.onnx GOLDEN.npz [CANDIDATE.onnx]

GOLDEN: tensors of the good model, which cuts are fed with; what it lacks is random. What the candidate holds as
constants where the good model computes (branches that were frozen) is fed to the good cut. Exit code 1: they differ;
3: something went wrong.
"""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

TOLERANCE = 1e-5


def main(good_path: str, golden_path: str, candidate_path: str = "polygraphy_debug.onnx") -> int:
    """Compare; return the exit code."""
    candidate, good = onnx.load(candidate_path), onnx.load(good_path)
    mine = onnxruntime.InferenceSession(candidate_path, _quiet(), providers=["CPUExecutionProvider"])
    feed = _feed(mine, golden_path)
    made = {name for node in good.graph.node for name in node.output}
    frozen = {t.name: numpy_helper.to_array(t) for t in candidate.graph.initializer if t.name in made}
    computed = {name for node in candidate.graph.node for name in node.output}
    names = [output.name for output in mine.get_outputs() if output.name in computed]
    if not names:
        return 0  # all of it was frozen: no node is left that could be wrong
    theirs_cut = _cut(good, feed | frozen, names)
    theirs = onnxruntime.InferenceSession(theirs_cut, _quiet(), providers=["CPUExecutionProvider"])
    wanted = {value.name for value in theirs.get_inputs()}
    known = [name for name in names if name in made]
    reference = theirs.run(known, {name: array for name, array in (feed | frozen).items() if name in wanted})
    return int(any(not _near(a, b) for a, b in zip(mine.run(known, feed), reference, strict=True)))


def _quiet() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return options


def _feed(session: onnxruntime.InferenceSession, golden_path: str) -> dict[str, Any]:
    random, feed = np.random.default_rng(0), {}
    with np.load(golden_path) as golden:
        for value in session.get_inputs():
            if value.name in golden.files:
                feed[value.name] = golden[value.name]
            else:
                shape = [length if isinstance(length, int) else 1 for length in value.shape]
                feed[value.name] = random.standard_normal(shape).astype(np.float32)
    return feed


def _cut(model: onnx.ModelProto, feed: Mapping[str, Any], names: list[str]) -> bytes:
    """The nodes between `feed` and `names`."""
    need, nodes = set(names), []
    for node in reversed(model.graph.node):
        if any(name in need and name not in feed for name in node.output):
            nodes.append(node)
            need.update(node.input)
    weights = [tensor for tensor in model.graph.initializer if tensor.name in need and tensor.name not in feed]
    made = {name for node in nodes for name in node.output}
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feed.items()
        if name in need and name not in made
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in names if name in made]
    graph = onnx.helper.make_graph(nodes[::-1], "cut", inputs, outputs, weights)
    cut = onnx.helper.make_model(graph, ir_version=max(4, model.ir_version), opset_imports=model.opset_import)
    data: bytes = cut.SerializeToString()
    return data


def _near(a: Any, b: Any) -> bool:
    if a.shape != b.shape:
        return False
    with np.errstate(all="ignore"):
        difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
        return bool(((difference <= TOLERANCE) | (difference <= TOLERANCE * np.abs(b)) | (a == b)).all())


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except Exception as error:
        print(error, file=sys.stderr)
        sys.exit(3)
