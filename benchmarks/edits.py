"""From an edit to its checked model: a graph of 20,000 nodes, and a model of 436 MB; beside a graphsurgeon round trip.

    python -m benchmarks.edits [--nodes 20000] [--megabytes 436] [--repeat 15]

Each edit follows the one before it, at another place. Shown: medians of making the edit, of checking what it changed
(onnx.checker, type and shape inference), and of both, in wall milliseconds; in brackets the processor's. Opening (once)
is apart. The exit code is 1 if a median of both is beyond its bound (100 ms and 300 ms).
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import onnx_graphsurgeon as gs

from benchmarks.inspect_model import long_model, weighty_model
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.edits import edit_from
from layerwise._tool.surgery.history.soundness import edit_problems
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.types.incremental import types_of

Edits = Callable[[Structure, int], dict[str, Any]]
BOUNDS = {"nodes": 0.1, "weights": 0.3}


def kinds() -> Iterator[tuple[str, Edits]]:
    """Names of edits, and how they are made for the node at a place."""
    yield "delete and reconnect", lambda s, i: {"edit": "delete-node", "nodes": [s.label(s.nodes[i])]}
    yield "insert", lambda s, i: {"edit": "insert-node", "tensor": s.nodes[i].output[0], "op": "Mul",
                                  "operands": [{"values": 2.0}]}  # fmt: skip
    yield "replace", lambda s, i: {"edit": "replace-node", "node": s.label(s.nodes[i]), "op": "Elu",
                                   "inputs": [s.nodes[i].input[0]], "attributes": {"alpha": 0.5}}  # fmt: skip
    yield "rename a tensor", lambda s, i: {"edit": "rename-tensor", "tensor": s.nodes[i].output[0], "to": f"t{i}_new"}
    yield "mark an output", lambda s, i: {"edit": "mark-output", "tensors": [s.nodes[i].output[0]]}


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What `work` returns, its wall seconds and its processor seconds."""
    wall, busy = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - busy


def opened(path: Path) -> Structure:
    """Open a model and all that edits need of it, and say how long that takes."""
    with ModelFile(path) as file:
        structure, opening, _ = timed(lambda: Structure.open(file))
    _, indexing, _ = timed(lambda: structure.lookups)
    _, inferring, _ = timed(lambda: types_of(structure))
    size = path.stat().st_size / 1e6
    print(f"{size:.0f} MB, {len(structure.nodes)} nodes: opened in {opening * 1e3:.0f} ms, indexed in "
          f"{indexing * 1e3:.0f} ms, types inferred in {inferring * 1e3:.0f} ms")  # fmt: skip
    return structure


def run(path: Path, repeat: int, bound: float) -> bool:
    """Print the latencies of all kinds of edits; False if one is beyond the bound."""
    first, fine = opened(path), True
    for name, make in kinds():
        structure, parts = first, []
        for turn in range(repeat + 1):
            place = (len(structure.nodes) * (turn + 1)) // (repeat + 3)
            edit = edit_from(make(structure, place))
            after, made, busy = timed(lambda edit=edit, structure=structure: edit.apply(structure))
            problems, checked, also = timed(lambda after=after, structure=structure: edit_problems(structure, after))
            if problems:
                raise SystemExit(f"{edit.describe()}: {problems}")
            structure = after
            parts += [(made, checked, made + checked, busy + also)] if turn else []
        made, checked, both, busy = (statistics.median(part[k] for part in parts) * 1e3 for k in range(4))
        fine &= both < bound * 1e3
        print(f"  {name:<22} edit {made:6.1f} ms, check {checked:6.1f} ms, both {both:6.1f} ms ({busy:6.1f} ms)")
    return fine


def round_trip(path: Path) -> None:
    """Print what graphsurgeon takes to import, clean up, sort and export the model."""
    model = onnx.load(path)
    _, wall, busy = timed(lambda: gs.export_onnx(gs.import_onnx(model).cleanup().toposort()))
    print(f"  graphsurgeon, no edit: import, clean up, sort, export {wall * 1e3:.0f} ms ({busy * 1e3:.0f} ms)")


def main() -> int:
    """Make the models, measure, compare with the bounds."""
    parser = argparse.ArgumentParser(description="Latency of edits.")
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--megabytes", type=int, default=436)
    parser.add_argument("--repeat", type=int, default=15)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        long, weighty = Path(name) / "long.onnx", Path(name) / "weighty.onnx"
        long_model(long, args.nodes)
        fine = run(long, args.repeat, BOUNDS["nodes"])
        round_trip(long)
        weighty_model(weighty, args.megabytes)
        fine &= run(weighty, args.repeat, BOUNDS["weights"])
    print("within the bounds" if fine else "BEYOND THE BOUNDS")
    return 0 if fine else 1


if __name__ == "__main__":
    if main():
        sys.exit(1)
