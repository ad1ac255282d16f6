"""The app on a large graph in a pseudo-terminal: time to the first usable frame, memory, bytes a key costs, idle CPU.

    python -m benchmarks.app [--nodes 100000] [--repeat 5]

Runs the real program at 120x40, indexed before; the byte budgets themselves are tests (tests/terminal).
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import psutil
from support.big_graph import chain_model
from support.terminal import app

FIRST = "/encoder/layer.0/Relu"


def first_frame(model: Path, env: dict[str, str]) -> float:
    """Seconds from the start of the process until the list and the detail pane are drawn and nothing more comes."""
    with app(model, env=env) as terminal:
        return terminal.wait_for(lambda text: FIRST in text and "▸ Add #0 ◂" in text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = chain_model(Path(folder) / "chain.onnx", args.nodes)
        env = {"LAYERWISE_HOME": f"{folder}/home"}
        print(f"{args.nodes:,} nodes, first opening (indexed in a job)  {first_frame(model, env):6.2f} s")
        times = [first_frame(model, env) for _ in range(args.repeat)]
        print(f"first usable frame, median of {args.repeat}                {statistics.median(times):6.2f} s")
        measure_keys(model, env)


def measure_keys(model: Path, env: dict[str, str]) -> None:
    """Print what keys cost in bytes, the app's memory and what it uses when idle."""
    with app(model, env=env) as terminal:
        terminal.wait_for(FIRST)
        terminal.until_silent()
        print(f"cursor move with the detail pane, median       {statistics.median(_costs(terminal, 'j')):6.0f} B")
        print(f"page                                           {terminal.cost('pagedown'):6.0f} B")
        terminal.cost("+")
        print(f"cursor move in the list alone, median          {statistics.median(_costs(terminal, 'j')):6.0f} B")
        terminal.cost("/", "softmax")
        process = psutil.Process(terminal.process.pid)
        before, begun = sum(process.cpu_times()[:2]), time.perf_counter()
        idle = terminal.until_silent(5.0)
        used = (sum(process.cpu_times()[:2]) - before) / (time.perf_counter() - begun)
        print(f"idle 5 s with the filter focused               {idle:6.0f} B, {used:.2%} of a core")
        print(f"memory                                         {terminal.memory() / 1e6:6.0f} MB")


def _costs(terminal: object, key: str) -> list[int]:
    return [terminal.cost(key) for _ in range(15)]  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
