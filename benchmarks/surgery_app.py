"""Surgery in the real app on a pseudo-terminal: from a key to the frame that shows what it did.

    python -m benchmarks.surgery_app [--nodes 20000] [--megabytes 436 | --model FILE] [--size 80x24] [--repeat 9]

Two models: a chain of many nodes, and one of many megabytes (or FILE). Each key is pressed once the screen is silent,
every time at another node. Shown: medians of the wall clock from the key to the end of the frame, the processor time
that the app's process (all threads) used until then, the bytes of all frames until silence, and the longest wall time;
`checked` is when the worker's word about the change is on view. The exit code is 1 if a median on the wall clock is
beyond its bound (100 ms for many nodes, 300 ms for many megabytes); on a machine that does other work look at the
processor time. (escape leaves a change as u does, a tenth of a second later: Textual waits whether more of a sequence
comes.)
"""

import argparse
import os
import select
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from support.terminal import FRAME_ENDS, Terminal, app

from benchmarks.inspect_model import long_model, weighty_model

BOUNDS = {"nodes": 0.1, "weights": 0.3}
SILENCE, LIMIT = 0.4, 60.0
Seen = Callable[[str], bool]


class Frame(NamedTuple):
    """Seconds from the key to the frame on the clock and of processor time, and to the last frame; bytes of all."""

    wall: float
    busy: float
    checked: float
    sent: int


class Step(NamedTuple):
    """A key, what is typed before it, what the frame that counts shows, and what the one shows that is checked."""

    name: str
    before: str
    key: str
    seen: Seen
    checked: Seen | None = None


def preview(text: str) -> bool:
    return "enter applies" in text


def checked(text: str) -> bool:
    return preview(text) and "looking at it" not in text and "being inferred" not in text


def edits(count: int) -> Seen:
    told = f" {count} edit" if count else "as the file"
    return lambda text: told in text and not preview(text)


def steps(place: int, done: int) -> Iterator[Step]:
    """One round of keys at a node, after which there are two edits more than `done`."""
    yield Step("ed     look at a deletion", f":goto {place}\re", "d", preview, checked)
    yield Step("u      leave it", "", "u", edits(done))
    yield Step("ed     look again", "e", "d", preview, checked)
    yield Step("enter  make it", "", "\r", edits(done + 1))
    yield Step("u      undo", "", "u", edits(done))
    yield Step("ctrl+r redo", "", "\x12", edits(done + 1))
    yield Step("ei Abs look at an insertion", f":goto {place + 5}\reiAbs", "\r", preview, checked)
    yield Step("enter  make it", "", "\r", edits(done + 2))
    yield Step("eo     look at an output", f":goto {place + 9}\re", "o", preview, checked)
    yield Step("u      leave it", "", "u", edits(done + 2))


def processor(pid: int) -> float:
    """Seconds of processor time that all threads of a process have used, to the microsecond (Linux)."""
    return time.clock_gettime((~pid << 3) | 2)


def pressed(terminal: Terminal, step: Step) -> Frame:
    """Press a key, read all that comes until silence, and find the frames that count."""
    if step.before:
        terminal.press(step.before)
        terminal.until_silent(SILENCE)
    pid = terminal.process.pid
    before, begun = processor(pid), time.perf_counter()
    terminal.press(step.key)
    frames: list[tuple[float, float, bytes]] = []
    found: list[tuple[float, float]] = []
    wanted = [step.seen, *([step.checked] if step.checked else [])]
    while len(found) < len(wanted):
        frames = list(arrived(terminal, pid))
        for at, busy, data in frames:
            terminal.feed(data)
            while len(found) < len(wanted) and wanted[len(found)](terminal.text):
                found.append((at - begun, busy - before))
        if time.perf_counter() - begun > LIMIT:
            raise SystemExit(f"{step.name}: not seen:\n{terminal.text}")
    return Frame(*found[0], found[-1][0], sum(len(data) for _, _, data in frames))


def arrived(terminal: Terminal, pid: int) -> Iterator[tuple[float, float, bytes]]:
    """Frames until silence: when each was whole, the processor time used then, its bytes. Nothing is drawn before."""
    data = b""
    while select.select([terminal.master], [], [], SILENCE)[0]:
        data += os.read(terminal.master, 1 << 16)
        if data.rstrip().endswith(FRAME_ENDS):
            yield time.perf_counter(), processor(pid), data
            data = b""
    if data:
        yield time.perf_counter(), processor(pid), data


def measured(path: Path, size: tuple[int, int], repeat: int, bound: float, home: Path) -> bool:
    """Print what each key costs on a model; False if a median is beyond the bound."""
    kept: dict[str, list[Frame]] = {}
    with app(path, columns=size[0], rows=size[1], env={"LAYERWISE_HOME": str(home)}) as terminal:
        terminal.wait_for("[1 Graph]", LIMIT)
        terminal.wait_for(lambda text: "▌" in text, LIMIT)
        terminal.until_silent(1.0)
        opening = pressed(terminal, Step("x", "", "x", edits(0)))
        print(f"{path.name}, {path.stat().st_size / 1e6:,.0f} MB, {size[0]}x{size[1]}; opened in {said(opening)}")
        for turn in range(repeat + 1):
            for step in steps(100 + turn * 37, 2 * turn):
                frame = pressed(terminal, step)
                kept.setdefault(f"{step.name}" if turn else f"{step.name} (first)", []).append(frame)
        print(f"  the app holds {terminal.memory() / 1e6:.0f} MB")
    return table(kept, bound)


def said(frame: Frame) -> str:
    return f"{frame.wall * 1e3:.0f} ms ({frame.busy * 1e3:.0f} ms of processor)"


def table(kept: dict[str, list[Frame]], bound: float) -> bool:
    """Print the medians of all that was measured more than once, and the first of each."""
    fine = True
    print(f"  {'key':<28} {'clock':>7} {'processor':>9} {'longest':>8} {'checked':>8} {'bytes':>7}   first: both")
    for name, frames in kept.items():
        if name.endswith("(first)"):
            continue
        wall, busy, seen, sent = (statistics.median(frame[k] for frame in frames) for k in range(4))
        first = kept[f"{name} (first)"][0]
        longest = max(frame.wall for frame in frames)
        fine &= wall < bound
        print(f"  {name:<28} {wall * 1e3:7.1f} {busy * 1e3:9.1f} {longest * 1e3:8.1f} {seen * 1e3:8.1f} {sent:7.0f}   "
              f"{first.wall * 1e3:.0f}, {first.busy * 1e3:.0f}")  # fmt: skip
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--megabytes", type=int, default=436)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--size", default="80x24")
    parser.add_argument("--repeat", type=int, default=9)
    args = parser.parse_args()
    columns, rows = map(int, args.size.split("x"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        long, weighty = folder / "long.onnx", args.model or folder / "weighty.onnx"
        long_model(long, args.nodes)
        fine = measured(long, (columns, rows), args.repeat, BOUNDS["nodes"], folder / "home")
        if args.model is None:
            weighty_model(weighty, args.megabytes)
        fine &= measured(weighty, (columns, rows), args.repeat, BOUNDS["weights"], folder / "home")
    print("within the bounds" if fine else "BEYOND THE BOUNDS")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
