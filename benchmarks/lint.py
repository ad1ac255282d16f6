"""`check lint` beside real Polygraphy on onnx's own light models: wall time and peak memory, process start included.

    python -m benchmarks.lint [--repeat 3] [--limit 160]

Each model as it is, and with one node's attribute broken. Polygraphy is stopped after `limit` seconds.
"""

import argparse
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import helper

from benchmarks.measure import OURS, THEIRS, measure, median

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = ("light_resnet50", "light_densenet121")


def broken(source: Path, folder: Path) -> Path:
    """The model with an attribute that no operator has on its last Relu."""
    model = onnx.load(source)
    last = [node for node in model.graph.node if node.op_type == "Relu"][-1]
    last.attribute.append(helper.make_attribute("bogus", 1))
    path = folder / f"{source.stem}_broken.onnx"
    onnx.save(model, path)
    return path


def theirs(words: Sequence[str], folder: Path, limit: float) -> str:
    """Polygraphy's time, or that it was stopped."""
    before, started = _cpu(), time.perf_counter()
    try:
        subprocess.run([*THEIRS, *words], cwd=folder, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"not done after {limit:.0f} s ({_cpu() - before:.0f} s of CPU)"
    return f"{time.perf_counter() - started:.2f} s ({_cpu() - before:.2f} s of CPU)"


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=160)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in NAMES:
            for path in (LIGHT / f"{name}.onnx", broken(LIGHT / f"{name}.onnx", folder)):
                words = ["check", "lint", str(path)]
                ours = median([measure([*OURS, *words], folder) for _ in range(options.repeat)])
                nodes = len(onnx.load(path).graph.node)
                other = theirs(words, folder, options.limit)
                figures = f"{ours.wall:.2f} s ({ours.cpu:.2f} s of CPU), {ours.peak:.0f} MB"
                print(f"{path.stem:<26} {nodes:5} nodes   Layerwise {figures}   Polygraphy {other}", flush=True)


if __name__ == "__main__":
    main()
