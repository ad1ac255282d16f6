"""A model and its external data overwritten and killed, at the moment one of the two has changed."""

import subprocess
import sys

from support.attack import formats, oracles, processes
from support.attack.case import Case
from support.attack.kills import check_again
from support.attack.lines import PAIRS, Line
from support.attack.programs import Program, run

Pair = tuple[list[str], dict[str, bytes]]  # operators and weights
# Kills a process and its children when one of two files is not the one it was; a process of its own is quick enough.
_WATCHER = """
import os, sys, time
pid, pause, *paths = sys.stdin.readline().split()
pid, pause = int(pid), float(pause)
def which(path):
    try:
        status = os.stat(path)
        return status.st_ino, status.st_size, status.st_mtime_ns
    except OSError:
        return None
first, children = [which(path) for path in paths], set()
print("ready", flush=True)
end = time.monotonic() + 20
while time.monotonic() < end and [which(path) for path in paths] == first:
    try:
        children |= set(open(f"/proc/{pid}/task/{pid}/children").read().split())
    except OSError:
        break
time.sleep(pause)
for one in (*map(int, children), pid):
    try:
        os.kill(one, 9)
    except OSError:
        pass
"""


def attack(case: Case) -> None:
    """Overwrite a pair, kill, and load what is there."""
    line = case.chance.choice(PAIRS)
    pairs: dict[str, Pair] = {}
    if case.chance.random() < 0.8:
        ended = run(case.place, tuple(_OTHER.get(word, word) for word in line.words))
        oracles.check_said(case, ended, (0,))
        pairs["old"] = formats.content_of(case.place.work / "made.onnx")
    program = _killed(case, line)
    ended = program.wait()
    oracles.check_said(case, ended, (0, -9), killed=True)
    left = processes.gone(case.place, program.pid)
    processes.end(left)
    _check(case, line, pairs)
    if case.chance.random() < 0.3:
        check_again(case, line)


_OTHER = {"good.onnx": "pair.onnx", "pair.onnx": "good.onnx"}


def _killed(case: Case, line: Line) -> Program:
    pause = case.chance.choice((0.0, 0.0, 0.0, 0.0002, 0.001, 0.003))
    case.tell(f"layerwise {' '.join(line.words)}: SIGKILL {pause * 1000:g} ms after a file has changed")
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", _WATCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as watcher:
        assert watcher.stdin is not None and watcher.stdout is not None
        program = Program(case.place, line.words)
        paths = " ".join(str(case.place.work / name) for name in ("made.onnx", "made.data"))
        watcher.stdin.write(f"{program.pid} {pause} {paths}\n")
        watcher.stdin.close()
        program.process.wait(60.0)
    return program


def _check(case: Case, line: Line, pairs: dict[str, Pair]) -> None:
    """The old pair, the new pair, or one of the two files is not there."""
    model, data = (case.place.work / name for name in ("made.onnx", "made.data"))
    if not model.exists() or not data.exists():
        return
    try:
        found = formats.content_of(model)
    except Exception as error:
        case.complain("half made", f"the pair does not load: {type(error).__name__}: {error}")
        return
    pairs["new"] = _new(case, line)
    if found not in pairs.values():
        case.complain("two models in one", f"the pair loads, and it is neither of {sorted(pairs)}")


def _new(case: Case, line: Line) -> Pair:
    place = case.world.place(700_000 + case.number % 100_000)
    try:
        run(place, line.words)
        return formats.content_of(place.work / "made.onnx")
    finally:
        place.remove()
