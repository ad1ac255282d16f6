"""`layerwise bench` beside a loop written by hand: `python -m benchmarks.gpu_bench FOLDER [--cpu] [--rounds 4]`.

For each *.onnx of the folder (one of large products where it has none), and for each way to run it: the same model and
inputs in a plain loop over onnxruntime in a process of its own, and `layerwise bench`, in turns, all on the same two
cores: a process that moves between cores runs at another speed. One line each: the least p50 and p90 of the rounds,
since all that disturbs only adds, and how far bench is off. Asked: within 5 %. Models whose operators take the GPU less
time than the host takes to start them measure the host, whose speed a shared machine does not keep. Ways: session
(inputs and outputs go over the bus in every run, by `session.run`), copies (the same by an IOBinding), device (an
IOBinding that leaves them on the GPU), graph (the same with a CUDA graph). With --cpu: `session.run` on the CPU.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from support.heavy import make_gpu_bound

from layerwise._tool.debugtools.bench.statistics import percentile

ASKED = 0.05
SECONDS, WARM_UP = 3.0, 1.0
WAYS = {
    "session": ["--providers", "cuda"],
    "copies": ["--providers", "cuda"],
    "device": ["--providers", "cuda", "--no-data-transfers"],
    "graph": ["--providers", "cuda", "--no-data-transfers", "--cuda-graph"],
    "cpu": [],
}


def hand_loop(model: Path, way: str) -> dict[str, float]:
    """p50 and p90 in milliseconds of what people write themselves."""
    import onnxruntime

    if way != "cpu":
        onnxruntime.preload_dlls()
    options = {"enable_cuda_graph": "1"} if way == "graph" else {}
    providers: Any = ["CPUExecutionProvider"] if way == "cpu" else [("CUDAExecutionProvider", options)]
    session = onnxruntime.InferenceSession(model, providers=providers)
    run = _plain(session, model) if way in ("cpu", "session") else _bound(session, model, way)
    end = time.perf_counter() + WARM_UP
    while time.perf_counter() < end:
        run()
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1000)
    ordered = np.sort(times)
    return {"p50": float(np.median(ordered)), "p90": percentile(ordered, 90), "runs": len(times)}


def _plain(session: Any, model: Path) -> Callable[[], object]:
    feed = _feed(session)
    return lambda: session.run(None, feed)


def _bound(session: Any, model: Path, way: str) -> Callable[[], object]:
    import onnxruntime

    binding, feed = session.io_binding(), _feed(session)
    on_device = [(name, onnxruntime.OrtValue.ortvalue_from_numpy(array, "cuda", 0)) for name, array in feed.items()]
    for name, value in on_device:
        binding.bind_ortvalue_input(name, value)
    if way != "graph":
        for node in session.get_outputs():
            binding.bind_output(node.name, "cuda", 0)
    else:  # whose outputs have to stay at one address
        cpu = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        for node, array in zip(cpu.get_outputs(), cpu.run(None, feed), strict=True):
            value = onnxruntime.OrtValue.ortvalue_from_shape_and_type(array.shape, array.dtype, "cuda", 0)
            binding.bind_ortvalue_output(node.name, value)

    def run() -> None:
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()

    def run_and_copy() -> None:
        for name, value in on_device:
            value.update_inplace(feed[name])
        run()
        binding.copy_outputs_to_cpu()

    return run_and_copy if way == "copies" else run


def _feed(session: Any) -> dict[str, Any]:
    """The inputs that `layerwise bench` makes: synthetic, dynamic dimensions 1."""
    from layerwise._tool.backends.feeds.sources import make_feeds
    from layerwise._tool.backends.onnxrt.values import type_name
    from layerwise._tool.backends.specs import FeedSpec
    from layerwise._tool.backends.tensors import TensorInfo

    inputs = [TensorInfo(node.name, type_name(node.type), tuple(node.shape)) for node in session.get_inputs()]
    return next(iter(make_feeds(FeedSpec(), inputs, lambda text: None)))


def ours(model: Path, way: str) -> dict[str, float]:
    """p50 and p90 in milliseconds of `layerwise bench`."""
    command = [sys.executable, "-m", "layerwise", "bench", str(model), *WAYS[way], "--json",
               "--duration", str(SECONDS), "--warm-up-time", str(WARM_UP)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    document = json.loads(done.stdout)
    if document["error"]:
        raise SystemExit(f"{model.name}, {way}: {document['error']['summary']}")
    run = document["runs"][0]
    return {"p50": run["latency"]["median"], "p90": run["latency"]["percentiles"]["90"], "runs": run["runs"]}


def by_hand(model: Path, way: str) -> dict[str, float]:
    """The loop in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gpu_bench", "--hand", str(model), way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{model.name}, {way}, by hand: {done.stderr[-600:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(model: Path, way: str, rounds: int) -> bool:
    """Print how far bench is off; whether within what was asked."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-2:])
    pairs = [(ours(model, way), by_hand(model, way)) for _ in range(rounds)]
    told, within = [], True
    for name in ("p50", "p90"):
        mine, theirs = (min(pair[side][name] for pair in pairs) for side in (0, 1))
        off = mine / theirs - 1
        within &= abs(off) <= ASKED
        told.append(f"{name} {mine:.4f} ms, by hand {theirs:.4f} ms ({off:+.1%})")
    verdict = "within 5 %" if within else "MORE THAN 5 % OFF"
    print(f"{model.name}  {way}: {'   '.join(told)}   {verdict}", flush=True)
    return within


def main() -> None:
    """Compare on every model of the folder; exit code 1 if one is too far off."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--cpu", action="store_true", help="the CPU alone")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--hand", nargs=2, metavar=("MODEL", "WAY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.hand:
        print(json.dumps(hand_loop(Path(options.hand[0]), options.hand[1])))
        return
    if options.folder is None:
        parser.error("name a folder of models")
    models = sorted(options.folder.glob("*.onnx")) or [make_gpu_bound(options.folder)]
    ways = ("cpu",) if options.cpu else ("session", "copies", "device", "graph")
    results = [compare(model, way, options.rounds) for model in models for way in ways]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
