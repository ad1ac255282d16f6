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

from support.attack import formats, journals, oracles, processes
from support.attack.case import Case
from support.attack.programs import Ended, Program, drain
from support.soak.processes import within

KEYS = (
    *"jkgGnNuzxdiartLbBtRryHDmMwso?.123456", " ", "\r", "\r", "\r", "\x1b", "\x1b", "\t", "\x1b[A", "\x1b[B",
    "\x1b[C", "\x1b[D", "\x1b[5~", "\x1b[6~", "/Relu\r", "/\x1b", ":\x1b", ":help\r", ":nonsense\r", "\x12", "\x10",
    "\x7f", "\x04", "\x15", "x\r", "R\r", "L\r", "ed", "ei", "er", "ef", "ep", "ee",
)  # fmt: skip
ENDS = ("SIGKILL", "SIGKILL", "SIGTERM", "SIGHUP", "closed", "closed", "q", "ctrl-c")
_STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_FRAME = re.compile(r"[\w/]+\.py:\d+ in \w+")
_READY = 30.0
_OVER = ("done", "failed", "cancelled", "lost")


class _App:
    """The app on a pseudo-terminal, and what it said."""

    def __init__(self, case: Case, columns: int, rows: int) -> None:
        self.said = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        env = {"COLORTERM": "truecolor", "LINES": str(rows), "COLUMNS": str(columns)}
        self.program = Program(case.place, ("bad.onnx",), env=env, streams=(slave, slave, slave), terminal="hangup")
        os.close(slave)
        case.tell(f"layerwise bad.onnx at {columns} x {rows}")

    @property
    def running(self) -> bool:
        return self.program.process.poll() is None

    def read(self, seconds: float) -> None:
        if self.master >= 0:
            self.said += drain(self.master, seconds)

    def ready(self) -> None:
        """Read what it draws first."""
        deadline = time.monotonic() + _READY
        while len(self.said) < 500 and self.running and time.monotonic() < deadline:
            self.read(0.2)

    def press(self, key: str, seconds: float) -> None:
        with suppress(OSError):
            os.write(self.master, key.encode())
        self.read(seconds)

    def signal(self, name: str) -> None:
        if self.running:
            with suppress(ProcessLookupError):
                os.kill(self.program.pid, signal.Signals[name])

    def end(self, how: str) -> None:
        """Ctrl-C and q may be answered by a question, or be a letter of a text: SIGTERM ends it then."""
        if how == "closed":
            self.close()
        elif how.startswith("SIG"):
            self.signal(how)
        else:
            self.press("\x1b\x1bq" if how == "q" else "\x03", 0.0)
        self.read(1.5)
        if how in ("q", "ctrl-c"):
            self.signal("SIGTERM")
        self.read(5.0)

    def close(self) -> None:
        """Once: another thread may have the number next."""
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


def attack(case: Case) -> None:
    """Open a model, press keys, end it, look."""
    app = _App(case, *case.chance.choice(((80, 24), (120, 40), (200, 60), (30, 8))))
    try:
        app.ready()
        _press(case, app)
        if case.chance.random() < 0.3:
            _kill_one(case, app.program)
            _press(case, app)
        before = journals.on_file(case.place)
        end = case.chance.choice(ENDS)
        case.tell(end)
        app.end(end)
    finally:
        app.close()
    ended = app.program.wait(20.0)
    _check(case, ended, app.said, end, before)


def _press(case: Case, app: _App) -> None:
    keys = [case.chance.choice(KEYS) for _ in range(case.chance.choice((1, 5, 15, 30)))]
    case.tell(f"keys {''.join(keys)!r}")
    for key in keys:
        if not app.running:
            break
        app.press(key, case.chance.choice((0.0, 0.01, 0.05, 0.2)))


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
    app = _App(case, 120, 40)
    app.ready()
    for key in ("3", "\x1b[B", "\r", "l", "\x1b"):
        app.press(key, 0.3)
    app.end("SIGTERM")
    app.close()
    ended = app.program.wait(20.0)
    _check_said(case, ended, app.said, "SIGTERM")
    if ended.code not in (0, 143, -15, 130):
        case.complain("exit code", f"the app: {ended.code}: {oracles.tail(app.said.decode('utf-8', 'replace'))}")


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
    journals.check_ends(case, cancels=True, retries=True)
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
