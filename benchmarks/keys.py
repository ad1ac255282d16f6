"""From a key to the screen: how long, of what processor time, in how many bytes; on every page, and at the first frame.

    python -m benchmarks.keys [--size 80x24] [--repeat 7] [--slow-line]

The real app in a pseudo-terminal on the demo's models, compared; a key is sent once the screen is silent, and what
comes until it is silent again counts. The time is that of the first and of the last frame of it.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from support.cli import fork_of
from support.terminal import Terminal, app

from benchmarks.surgery_app import arrived, processor
from layerwise._tool.surgery.demo import make_demo

PAGES = (
    ("1", "Graph", ("j", "ctrl+d", "pagedown", "G", "g", "/", "escape")),
    ("2", "Errors", ("j", "ctrl+d", "pagedown", "f", "s", "/", "escape")),
    ("3", "Jobs", ("j", "k", "?", "escape")),
    ("4", "Debug", ("?", "escape")),
    ("5", "Surgery", ("j", "ctrl+d", "z", "z")),
    ("6", "Perf", ("?", "escape")),
)  # fmt: skip
MOVES = 5


def first_frame(model: Path, env: dict[str, str], size: tuple[int, int]) -> tuple[float, float]:
    """Seconds until the first rows of a model are drawn, in a Python of its own; processor time of it."""
    with app(model, env=env, columns=size[0], rows=size[1], fresh=True) as terminal:
        seconds = terminal.wait_for("/embeddings/word/Gather")
        return seconds, processor(terminal.process.pid)


def press(terminal: Terminal, key: str) -> tuple[float, float, float, int]:
    """Seconds to the first and to the last frame, of processor, and bytes."""
    pid = terminal.process.pid
    busy, begun = processor(pid), time.perf_counter()
    terminal.press(key)
    frames = list(arrived(terminal, pid))
    for _, _, data in frames:
        terminal.feed(data)
    if not frames:
        return 0.0, 0.0, 0.0, 0
    return frames[0][0] - begun, frames[-1][0] - begun, frames[-1][1] - busy, sum(len(data) for *_, data in frames)


def measure(model: Path, env: dict[str, str], size: tuple[int, int], repeat: int) -> None:
    """Print a line for each key of each page: medians."""
    print(f"{'page':<9}{'key':<10}{'first ms':>9}{'last ms':>9}{'cpu ms':>8}{'bytes':>8}")
    with app(model, env=env, columns=size[0], rows=size[1]) as terminal:
        terminal.wait_for("done: 411 rows" if "[2" in terminal.text else "1,097 nodes", 60)
        terminal.until_silent(1.0)
        for digit, page, keys in PAGES:
            found: dict[str, list[tuple[float, float, float, int]]] = {}
            for _ in range(repeat):
                for key in (digit, *keys):
                    for _ in range(MOVES if key == "j" else 1):  # one of them turns half a page
                        found.setdefault(key, []).append(press(terminal, key))
                press(terminal, "1" if digit != "1" else "2")
            for key, costs in found.items():
                first, last, busy, size_ = (statistics.median(part) for part in zip(*costs, strict=True))
                print(f"{page:<9}{key:<10}{first * 1e3:>9.1f}{last * 1e3:>9.1f}{busy * 1e3:>8.1f}{size_:>8.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="80x24")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--slow-line", action="store_true")
    args = parser.parse_args()
    columns, rows = map(int, args.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        demo = make_demo(Path(folder) / "demo")
        env = {"LAYERWISE_HOME": f"{folder}/home", "LAYERWISE_SLOW_LINE": str(int(args.slow_line))}
        sides = ("--runner", "onnxrt", "--runner", f"onnxrt,model={demo.fp32}", "--mark-all", "--quiet")
        fork_of("layerwise", ("run", str(demo.fp16), *sides), Path(folder), {**os.environ, **env})
        load = os.getloadavg()[0]
        print(f"python -m benchmarks.keys --size {args.size}, {os.cpu_count()} cores, load average {load:.2f}")
        times = [first_frame(demo.fp16, env, (columns, rows)) for _ in range(args.repeat)]
        first, busy = (statistics.median(part) for part in zip(*times, strict=True))
        print(f"first frame, median of {args.repeat}: {first:.2f} s, {busy:.2f} s of processor")
        measure(demo.fp16, env, (columns, rows), args.repeat)


if __name__ == "__main__":
    main()
