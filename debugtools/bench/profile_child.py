"""Profiles one runner in a process of its own: `python -m debugtools.bench.profile_child`, the request on stdin.

Of its own because a GPU's kernels are timed truly only where each launch waits (CUDA_LAUNCH_BLOCKING, which must be
set before CUDA starts), and that must not slow the bench.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from backends.errors import LayerwiseError, UsageError
from backends.text import shown
from debugtools.bench.spec import BenchSpec

SKIPPED = 3
_EVENTS = 50_000
_FEWEST, _MOST = 5, 100


@dataclass(frozen=True)
class Profile:
    """Files of a profile; `skip`: its first runs, which are warm-up; graph: what onnxruntime ran, where it can tell."""

    path: Path
    graph: Path | None
    skip: int


def profile(spec: BenchSpec, number: int, batch: int | None, folder: Path) -> Profile:
    """Profile runner `number`. Raises LayerwiseError with what the process said."""
    folder.mkdir(parents=True, exist_ok=True)
    request = {"spec": msgspec.to_builtins(spec), "number": number, "batch": batch, "folder": str(folder)}
    env = {**os.environ, "CUDA_LAUNCH_BLOCKING": "1"}
    command = [sys.executable, "-m", "debugtools.bench.profile_child"]
    done = subprocess.run(
        command, input=json.dumps(request), capture_output=True, text=True, env=env, check=False, errors="replace"
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        said = shown(done.stderr.strip()[-400:])
        raise LayerwiseError(f"the profiling process ended with status {done.returncode}: {said}") from None
    if "error" in answer:
        raise LayerwiseError(f"the layers cannot be profiled: {answer['error']}")
    graph = answer["graph"]
    return Profile(Path(answer["profile"]), Path(graph) if graph else None, answer["skip"])


def main() -> int:
    """Answer the request on stdin with one line of JSON."""
    request = json.loads(sys.stdin.read())
    try:
        answer = _answer(msgspec.convert(request["spec"], BenchSpec), request)
    except LayerwiseError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
    return 0


def _answer(spec: BenchSpec, request: dict[str, Any]) -> dict[str, Any]:
    from backends.bench.onnxrt import profiled
    from debugtools.bench.layers import with_names
    from debugtools.bench.subjects import feed_for, open_model

    runner = spec.runners[request["number"]]
    if runner.kind != "onnxrt":
        raise UsageError(f"layers of a runner of kind {runner.kind!r} cannot be timed by this version")
    make_feed: Callable[[Any], Any] = lambda inputs: feed_for(spec, inputs, request["batch"], lambda text: None)  # noqa: E731
    found = profiled(runner, with_names(open_model(spec, runner)), make_feed, _runs, Path(request["folder"]))
    return {"profile": str(found[0]), "graph": str(found[1]) if found[1] else None, "skip": SKIPPED}


def _runs(nodes: int) -> int:
    """How many runs to profile: fewer the more events a run writes."""
    return SKIPPED + max(_FEWEST, min(_MOST, _EVENTS // max(1, nodes)))


if __name__ == "__main__":
    sys.exit(main())
