"""The app in a pseudo-terminal: random keys, and an end at any moment; what ran goes on, what was saved is whole."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import termios
import time
from contextlib import suppress

from benchmarks.attack import formats, journals, oracles, processes
from benchmarks.attack.case import Case
from benchmarks.attack.programs import Ended, Program, drain
from benchmarks.soak.processes import within

KEYS = (
    *"jkgGnNuzxdiartLbBtRryHDmMwso?.123456", " ", "\r", "\r", "\r", "\x1b", "\x1b", "\t", "\x1b[A", "\x1b[B",
    "\x1b[C", "\x1b[D", "\x1b[5~", "\x1b[6~", "/Relu\r", "/\x1b", ":\x1b", ":help\r", ":nonsense\r", "\x12", "\x10",
    "\x7f", "\x04", "\x15", "x\r", "R\r", "L\r",
)  # fmt: skip
ENDS = ("SIGKILL", "SIGKILL", "SIGTERM", "SIGHUP", "closed", "closed", "q", "ctrl-c")
_STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_FRAME = re.compile(r"[\w/]+\.py:\d+ in \w+")
_READY = 30.0
_OVER = ("done", "failed", "cancelled", "lost")


def attack(case: Case) -> None:
    """Open a model, press keys, end it, look."""
    columns, rows = case.chance.choice(((80, 24), (120, 40), (200, 60), (30, 8)))
    master, program = _opened(case, columns, rows)
    try:
        said = _ready(master, program)
        said += _press(case, master, program)
        if case.chance.random() < 0.3:
            _kill_one(case, program)
            said += _press(case, master, program)
        before = journals.on_file(case.place)
        end = case.chance.choice(ENDS)
        case.tell(end)
        said += _end(master, program, end)
    finally:
        with suppress(OSError):
            os.close(master)
    ended = program.wait(20.0)
    _check(case, ended, said, end, before)


def _ready(master: int, program: Program) -> bytes:
    """What the app draws first."""
    said, deadline = b"", time.monotonic() + _READY
    while len(said) < 500 and program.process.poll() is None and time.monotonic() < deadline:
        said += drain(master, 0.2)
    return said


def _kill_one(case: Case, program: Program) -> None:
    """SIGKILL to a worker, a supervisor, or a process that waits for a job."""
    found = [process.pid for process in processes.of(case.place) if process.pid != program.pid]
    if found:
        case.tell("SIGKILL to one of its processes")
        with suppress(ProcessLookupError):
            os.kill(case.chance.choice(sorted(found)), signal.SIGKILL)


def glance(case: Case) -> None:
    """Open the app on the workspace, look at the jobs, and leave."""
    case.tell("the app's list of jobs")
    master, program = _opened(case, 120, 40)
    said = _ready(master, program)
    for key in ("3", "\x1b[B", "\r", "l", "\x1b"):
        with suppress(OSError):
            os.write(master, key.encode())
        said += drain(master, 0.3)
    said += _end(master, program, "SIGTERM")
    os.close(master)
    ended = program.wait(20.0)
    _check_said(case, ended, said, "SIGTERM")
    if ended.code not in (0, 143, -15, 130):
        case.complain("exit code", f"the app: {ended.code}: {oracles.tail(said.decode('utf-8', 'replace'))}")


def _opened(case: Case, columns: int, rows: int) -> tuple[int, Program]:
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    env = {"COLORTERM": "truecolor", "LINES": str(rows), "COLUMNS": str(columns)}
    program = Program(case.place, ("bad.onnx",), env=env, streams=(slave, slave, slave), terminal="hangup")
    os.close(slave)
    case.tell(f"layerwise bad.onnx at {columns} x {rows}")
    return master, program


def _press(case: Case, master: int, program: Program) -> bytes:
    said = b""
    keys = [case.chance.choice(KEYS) for _ in range(case.chance.choice((1, 5, 15, 30)))]
    case.tell(f"keys {''.join(keys)!r}")
    for key in keys:
        if program.process.poll() is not None:
            break
        with suppress(OSError):
            os.write(master, key.encode())
        said += drain(master, case.chance.choice((0.0, 0.01, 0.05, 0.2)))
    return said


def _end(master: int, program: Program, end: str) -> bytes:
    """Ctrl-C and q may be answered by a question, or be a letter of a text: SIGTERM ends it then."""
    if end == "closed":
        os.close(master)
        return b""
    with suppress(OSError, ProcessLookupError):
        if end.startswith("SIG") and program.process.poll() is None:
            os.kill(program.pid, signal.Signals[end])
        else:
            os.write(master, b"\x1b\x1bq" if end == "q" else b"\x03")
    said = drain(master, 1.5)
    if program.process.poll() is None and not end.startswith("SIG"):
        with suppress(ProcessLookupError):
            os.kill(program.pid, signal.SIGTERM)
    return said + drain(master, 5.0)


def _check_said(case: Case, ended: Ended, said: bytes, end: str) -> None:
    text = said.decode("utf-8", "replace")
    case.last = ended._replace(out=text[-3000:])
    if ended.code is None:
        case.complain("hang", f"the app does not end after {end}")
    elif ended.code < 0 and -ended.code not in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        case.complain("exit code", f"{ended.code}: {oracles.tail(text)}")
    if "Traceback" in text:
        plain = _STYLE.sub("", text)
        case.complain("traceback", f"{_FRAME.findall(plain)[-4:]} {oracles.tail(plain)[-100:]}")
    oracles.check_memory(case, ended)


def _check(case: Case, ended: Ended, said: bytes, end: str, before: dict[str, bytes]) -> None:
    _check_said(case, ended, said, end)
    _end_jobs(case)
    oracles.check_left(case)
    journals.check_ends(case, cancels=True)
    journals.check_kept(case, before)
    oracles.check_inputs(case)
    hidden = sorted(path.name for path in case.place.work.glob(".*"))  # others were asked for by a key
    if hidden:
        case.complain("left in the folder", f"{hidden}")
    for path in case.place.home.glob("sessions/*.json"):
        if broken := formats.broken(path):
            case.complain("half made", f"{path.name}: {broken}")


def _end_jobs(case: Case) -> None:
    """Let what the app began come to its end: the worker of an open model by itself, questions by a cancel."""
    within(25.0, lambda: all(_is_over(journal) for journal in journals.on_file(case.place).values()))
    if not processes.gone(case.place, seconds=10.0):
        return
    for job, journal in journals.on_file(case.place).items():
        if journals.last_state(journal) == "waiting":
            entry = json.dumps({"type": "cancel", "attempt": 1}) + "\n"
            with (case.place.home / "jobs" / job / "replies.jsonl").open("a") as file:
                file.write(entry)


def _is_over(journal: bytes) -> bool:
    return journals.last_state(journal) in (*_OVER, "waiting")
