"""Profiles one runner in a separate process.

`python -m layerwise._tool.debugtools.bench.profile_child`, the request on stdin.

Separate because a GPU's kernels are timed correctly only if each launch waits (CUDA_LAUNCH_BLOCKING, which must be
set before CUDA starts), and that must not slow down the bench.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.backends.bench.onnxrt_profile import LayerTime
from layerwise._tool.backends.bench.timed import Feed
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.spec import BenchSpec

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
    from layerwise._tool.debugtools.bench.layers import with_names
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
