"""Metrics of two large tensors: our fused pass beside the real Polygraphy's simple comparison, in one process.

python -m benchmarks.metrics [--megabytes 100] [--repeat 3]
"""

import argparse
import contextlib
import io
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from polygraphy.comparator import IterationResult, SimpleCompareFunc

from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule

ASKED = 15.0
Array = NDArray[np.float32]


def seconds(work: Callable[[], object], repeat: int) -> float:
    """The median time of some work."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def polygraphy(a: Array, b: Array) -> object:
    """Compare with SimpleCompareFunc, which CompareFunc.simple makes."""
    first, second = IterationResult({"x": a}, runner_name="a"), IterationResult({"x": b}, runner_name="b")
    return SimpleCompareFunc()(first, second)


def main() -> None:
    """Print the time and rate of both, for tensors that differ everywhere and for equal ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    a = random.standard_normal(options.megabytes * 250_000, dtype=np.float32)
    noise = np.float32(1e-6) * random.standard_normal(a.size, dtype=np.float32)
    missed = False
    for title, b in (("different", a + noise), ("equal", a.copy())):
        ours = seconds(lambda b=b: compare_arrays(a, b, Rule()), options.repeat)
        theirs = seconds(lambda b=b: polygraphy(a, b), options.repeat)
        missed |= theirs < ASKED * ours
        print(
            f"{title:10} 2 x {options.megabytes} MB: ours {ours * 1e3:7.1f} ms, {2 * a.nbytes / ours / 1e9:5.2f} GB/s; "
            f"Polygraphy {theirs * 1e3:7.1f} ms: {theirs / ours:.1f} times (asked: {ASKED:g})"
        )
    sys.exit(missed)


if __name__ == "__main__":
    main()
