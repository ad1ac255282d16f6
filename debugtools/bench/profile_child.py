"""Profiles one runner in a separate process; the layers that a backend really ran, mapped to the model.

`python -m layerwise._tool.debugtools.bench.profile_child`, the request on stdin.

Separate because a GPU's kernels are timed correctly only if each launch waits (CUDA_LAUNCH_BLOCKING, which must be
set before CUDA starts), and that must not slow down the bench.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import onnx

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.bench.onnxrt_profile import LayerTime
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo, dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.rows import ProfileRow
from layerwise._tool.debugtools.bench.spec import BenchSpec
from layerwise._tool.surgery.model.structure import node_label

_LISTED = re.compile(r" \+ |, |\.\.\.|PWN\(|ForeignNode\[")
_BLOCKED = "_nchwc"  # what onnxruntime adds to a node's name, or to its tensor's, where the layout is blocked


@dataclass(frozen=True)
class ModelNode:
    """The model's counterpart of a layer: a tensor, and name and operator of the node that makes it; empty if
    unknown.
    """

    tensor: str = ""
    node: str = ""
    op: str = ""


class Origins:
    """Finds the model's node for a layer: by a tensor that both make, else by name. For fused nodes, the last
    one.
    """

    def __init__(self, model: onnx.ModelProto | None) -> None:
        nodes = model.graph.node if model is not None else ()
        self._makers = {name: node for node in nodes for name in node.output if name}
        self._named = {node.name: node for node in nodes if node.name}

    def place(self, name: str, outputs: Iterable[str]) -> ModelNode:
        """Return the counterpart of a layer with that name that makes these tensors."""
        plain = name.removesuffix(_BLOCKED)
        for tensor in (*outputs, plain):
            if tensor in self._makers:
                return ModelNode(tensor, node_label(self._makers[tensor]), self._makers[tensor].op_type)
        node = self._named.get(name) or self._named.get(plain) or self._last_named(name)
        return ModelNode(next(filter(None, node.output), ""), node.name, node.op_type) if node else ModelNode()

    def _last_named(self, name: str) -> onnx.NodeProto | None:
        """Return the last node in the name of a TensorRT layer: `A + B`, `PWN(A, B)`, `{ForeignNode[A...B]}`."""
        words = (word.strip("[]{}() ") for word in _LISTED.split(name))
        return next((self._named[word] for word in reversed(list(words)) if word in self._named), None)


def with_names(model: Loadable) -> Loadable:
    """Return the model with a name for each node of its main graph, by default that of its first output, since a
    profile identifies layers by name only (onnxruntime rejects duplicates).
    """
    proto = parse_model(model.read())
    for node in proto.graph.node:
        node.name = node_label(node)
    return Loadable(data=proto.SerializeToString(), folder=model.data_folder())


def profile_rows(
    runner: str, batch: int | None, layers: Sequence[LayerTime], executed: onnx.ModelProto | None, origins: Origins
) -> list[ProfileRow]:
    """Rows of the table profile, in the order of execution."""
    total = sum(layer.typical_ms for layer in layers) or 1.0
    outputs = {node.name: list(node.output) for node in executed.graph.node} if executed is not None else {}
    rows = []
    for i, layer in enumerate(layers):
        place = origins.place(layer.name, outputs.get(layer.name, []))
        rows.append(ProfileRow(
            runner=runner, batch=batch, i=i, name=layer.name, op=layer.op or place.op, provider=layer.provider,
            tensor=place.tensor, node=place.node, calls=layer.calls, mean_ms=layer.mean_ms, median_ms=layer.median_ms,
            total_ms=sum(layer.runs_ms), typical_ms=layer.typical_ms, percent=layer.typical_ms / total * 100,
        ))  # fmt: skip
    return rows


def layer_information(executed: onnx.ModelProto, origins: Origins) -> str:
    """Return the layers as JSON in the form of trtexec's `--exportLayerInfo` at detailed verbosity."""
    graph = executed.graph
    known = {value.name: value.type.tensor_type for value in (*graph.input, *graph.value_info, *graph.output)}

    def tensor(name: str) -> dict[str, Any]:
        kind = known.get(name)
        if kind is None or not kind.elem_type:
            return {"Name": name}
        dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
        return {"Name": name, "Dimensions": dims, "Format/Datatype": dtype_name(kind.elem_type)}

    layers = [
        {"Name": node.name, "LayerType": node.op_type, "Inputs": [tensor(name) for name in node.input if name],
         "Outputs": [tensor(name) for name in node.output if name],
         "Metadata": f"[ONNX Layer: {origins.place(node.name, node.output).node}]"} for node in graph.node
    ]  # fmt: skip
    bindings = [value.name for value in (*graph.input, *graph.output)]
    return json.dumps({"Layers": layers, "Bindings": bindings}, indent=1)


def read_graph(path: str | None) -> onnx.ModelProto | None:
    """Read a graph written by a backend, without its weights."""
    return onnx.load(path, load_external_data=False) if path is not None else None


SKIPPED = 3
_EVENTS = 50_000
_FEWEST, _MOST = 5, 100
_TRT_RUNS = 50

MakeFeed = Callable[[list[TensorInfo]], Feed]


@dataclass(frozen=True)
class LayerProfile:
    """The layers of a runner; graph: file of the graph that onnxruntime ran, if known; information: TensorRT's
    inspector output.
    """

    layers: list[LayerTime]
    graph: str | None = None
    information: str | None = None


def profile(spec: BenchSpec, number: int, batch: int | None, folder: Path) -> LayerProfile:
    """Profile runner `number`. Raises LayerwiseError with what the process said."""
    folder.mkdir(parents=True, exist_ok=True)
    request = {"spec": msgspec.to_builtins(spec), "number": number, "batch": batch, "folder": str(folder)}
    env = {**os.environ, "CUDA_LAUNCH_BLOCKING": "1"}
    command = [sys.executable, "-m", "layerwise._tool.debugtools.bench.profile_child"]
    done = subprocess.run(
        command, input=json.dumps(request), capture_output=True, text=True, env=env, check=False, errors="replace"
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        said = shown("".join(done.stderr.strip().splitlines()[-1:]), 400)
        raise LayerwiseError(f"the profiling process ended with status {done.returncode}: {said}") from None
    if "error" in answer:
        raise LayerwiseError(f"the layers cannot be profiled: {answer['error']}")
    return msgspec.convert(answer, LayerProfile)


def main() -> int:
    """Answer the request on stdin with one line of JSON."""
    request = json.loads(sys.stdin.read())
    try:
        answer = msgspec.json.encode(_profile(msgspec.convert(request["spec"], BenchSpec), request)).decode()
    except LayerwiseError as error:
        answer = json.dumps({"error": str(error)})
    print(answer, flush=True)
    return 0


def _profile(spec: BenchSpec, request: dict[str, Any]) -> LayerProfile:
    from layerwise._tool.debugtools.bench.subjects import feed_for

    runner = spec.runners[request["number"]]
    if runner.kind not in _PROFILED:
        raise UsageError(f"layers of a runner of kind {runner.kind!r} cannot be timed by this version")

    def make_feed(inputs: list[TensorInfo]) -> Feed:
        return feed_for(spec, inputs, request["batch"], lambda text: None)

    return _PROFILED[runner.kind](spec, runner, make_feed, Path(request["folder"]))


def _onnxrt(spec: BenchSpec, runner: RunnerSpec, make_feed: MakeFeed, folder: Path) -> LayerProfile:
    from layerwise._tool.backends.bench.onnxrt import profiled
    from layerwise._tool.backends.bench.onnxrt_profile import read_profile
    from layerwise._tool.debugtools.bench.subjects import open_model

    path, graph = profiled(runner, with_names(open_model(spec, runner)), make_feed, _runs, folder)
    return LayerProfile(read_profile(path, SKIPPED), str(graph) if graph else None)


def _trt(spec: BenchSpec, runner: RunnerSpec, make_feed: MakeFeed, folder: Path) -> LayerProfile:
    from layerwise._tool.backends.bench.timed import Setup
    from layerwise._tool.backends.bench.trt import TrtSubject
    from layerwise._tool.debugtools.bench.subjects import open_model

    with closing(TrtSubject(runner, open_model(spec, runner), Setup(), runner.kind)) as subject:
        layers = subject.layers(make_feed(subject.inputs), SKIPPED + _TRT_RUNS, SKIPPED)
        return LayerProfile(layers, information=subject.information())


_PROFILED = {"onnxrt": _onnxrt, "trt": _trt}


def _runs(nodes: int) -> int:
    """Return how many runs to profile: fewer, the more events a run writes."""
    return SKIPPED + max(_FEWEST, min(_MOST, _EVENTS // max(1, nodes)))


if __name__ == "__main__":
    sys.exit(main())
