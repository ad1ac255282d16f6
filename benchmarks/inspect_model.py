"""`inspect model` beside real Polygraphy: wall time and peak memory of fresh processes, start included.

    python -m benchmarks.inspect_model [--megabytes 400] [--nodes 20000] [--repeat 5]

Both tools are run in turn on the same files, the first run of each thrown away; the figures are medians.
Polygraphy is the one installed beside this Python.
"""

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
OURS = [sys.executable, "-m", "layerwise"]
THEIRS = [str(Path(sys.executable).parent / "polygraphy")]
Layer = list[onnx.NodeProto]


def weighty_model(path: Path, megabytes: int) -> None:
    """Write a chain of Gemm and Relu with `megabytes` of float32 weights in the file itself."""
    width, name = 1024, "x"
    random = np.random.default_rng(0)
    nodes: Layer = []
    weights = []
    for i in range(max(1, megabytes // 4)):
        weights.append(numpy_helper.from_array(random.standard_normal((width, width), np.float32), f"w{i}"))
        nodes.append(helper.make_node("Gemm", [name, f"w{i}"], [f"g{i}"], name=f"gemm_{i}"))
        nodes.append(helper.make_node("Relu", [f"g{i}"], [f"r{i}"], name=f"relu_{i}"))
        name = f"r{i}"
    save(path, nodes, name, weights)


def long_model(path: Path, count: int) -> None:
    """Write a chain of `count` nodes without weights."""
    names = ["x", *[f"/block.{i // 50}/layer.{i // 10}/out_{i}" for i in range(count)]]
    ops = ("Relu", "Sigmoid", "Tanh", "Neg")
    nodes = [
        helper.make_node(ops[i % 4], [names[i]], [names[i + 1]], name=f"/block.{i // 50}/{ops[i % 4]}_{i}")
        for i in range(count)
    ]
    save(path, nodes, names[-1], [])


def save(path: Path, nodes: Layer, output: str, weights: list[onnx.TensorProto]) -> None:
    """Write a model of input x and one output, both [N, 1024]."""
    shape = ["N", 1024]
    values = [[helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape)] for n in ("x", output)]
    graph = helper.make_graph(nodes, "benchmark", *values, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def measure(command: list[str]) -> tuple[float, float]:
    """Return the seconds that a command took, and its peak memory in MB (VmHWM, sampled, of the process tree)."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = time.perf_counter()
    child = os.posix_spawn(
        command[0],
        command,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
    )
    peak, done = [0.0], threading.Event()
    watcher = threading.Thread(target=watch, args=(child, peak, done))
    watcher.start()
    _, status, _ = os.wait4(child, 0)
    seconds = time.perf_counter() - started
    done.set()
    watcher.join()
    if status:
        raise SystemExit(f"{' '.join(command)} failed: {status}")
    return seconds, peak[0]


def watch(child: int, peak: list[float], done: threading.Event) -> None:
    """Keep the largest sum of resident memory over the process and its children."""
    import psutil

    while not done.wait(0.002):
        try:
            process = psutil.Process(child)
            total = sum(p.memory_info().rss for p in (process, *process.children(recursive=True)))
        except psutil.Error:
            return
        peak[0] = max(peak[0], total / 1e6)


def compare(title: str, arguments: list[str], repeat: int) -> None:
    """Run both tools in turn and print their medians and ratios."""
    found: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
    for turn in range(repeat + 1):
        for who, tool in (("ours", OURS), ("theirs", THEIRS)):
            result = measure([*tool, "inspect", "model", *arguments])
            if turn:
                found[who].append(result)
    (ours, our_mb), (theirs, their_mb) = (
        tuple(statistics.median(r[k] for r in found[who]) for k in (0, 1)) for who in ("ours", "theirs")
    )
    print(
        f"{title:<38} {ours:7.3f} s {our_mb:7.1f} MB | {theirs:7.3f} s {their_mb:7.1f} MB"
        f" | time x{ours / theirs:.3f}, memory x{our_mb / their_mb:.3f}",
        flush=True,
    )


def main() -> None:
    """Make the models and print a line for each way of showing them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        weighty, long = Path(folder) / "weighty.onnx", Path(folder) / "long.onnx"
        weighty_model(weighty, options.megabytes)
        long_model(long, options.nodes)
        print(f"{'inspect model':<38} {'Layerwise':^21} | {'Polygraphy':^21} | ratio")
        size = f"{options.megabytes} MB"
        compare(size, [str(weighty)], options.repeat)
        compare(f"{size}, --show layers", [str(weighty), "--show", "layers"], options.repeat)
        compare(f"{size}, --show layers weights", [str(weighty), "--show", "layers", "weights"], options.repeat)
        compare(f"{options.nodes} nodes, --show layers", [str(long), "--show", "layers"], options.repeat)


if __name__ == "__main__":
    main()
