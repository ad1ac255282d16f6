"""Real Polygraphy's `debug reduce` on a planted fault, as a careful user would call it.

Its check compares the candidate with the same cut of the good model on onnxruntime (two_sides.py). The cuts are fed
with the good model's tensors, saved before; the time for that is not counted.
"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from support.faults import running
from support.faults.check import label
from support.faults.corpus import Clean, Planted
from support.faults.files import Files

from benchmarks.measure import THEIRS, measure

SCRIPT = Path(__file__).with_name("two_sides.py")


@dataclass(frozen=True)
class Reduced:
    """What `debug reduce` took, and the labels of the nodes that are left."""

    seconds: float
    cpu: float
    peak: float
    checks: int
    nodes: tuple[str, ...]


def polygraphy_reduce(files: Files, clean: Clean, mode: str = "bisect") -> Reduced:
    """Run it in the files' folder. Polygraphy refuses to start where an earlier candidate lies."""
    folder = files.suspect.parent
    if not files.golden.exists():
        np.savez(files.golden, **clean.tensors)  # type: ignore[arg-type]
    (folder / "polygraphy_debug.onnx").unlink(missing_ok=True)
    (folder / "reduced.onnx").unlink(missing_ok=True)
    run = measure(
        [
            *(*THEIRS, "debug", "reduce", "suspect.onnx", "-o", "reduced.onnx", "--mode", mode),
            *("--load-inputs", "inputs.json", "--save-debug-replay", "replay.json", "--fail-code", "1"),
            *("--check", sys.executable, str(SCRIPT), "good.onnx", "golden.npz", "polygraphy_debug.onnx"),
        ],
        folder,
    )
    left = onnx.load(folder / "reduced.onnx", load_external_data=False).graph.node
    checks = len(json.loads((folder / "replay.json").read_text()))
    return Reduced(run.wall, run.cpu, run.peak, checks, tuple(map(label, left)))


def bare_runs(clean: Clean, planted: Planted) -> float:
    """Seconds in which onnxruntime alone opens and runs both sides in this process."""
    started = time.perf_counter()
    running.run(planted.model, clean.feed)
    running.run(clean.model, clean.feed)
    return time.perf_counter() - started
