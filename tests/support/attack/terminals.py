"""Terminals that go away, stop, or are not read; pipes whose reader has gone: the telling ends, the job does not."""

import os
import pty
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from support.attack import journals, oracles
from support.attack.case import Case
from support.attack.kills import at_moment, check_after
from support.attack.lines import JOBS, LINES, Line
from support.attack.place import tree
from support.attack.programs import Ended, Program, drain
from support.attack.reference import newest_job
from support.forkserver import HANGUP_OFF
from support.soak.processes import within

STOP, GO = b"\x13", b"\x11"


def attack(case: Case) -> None:
    """Start a command on a terminal or a pipe, and take that away."""
    way = case.chance.choice((_closed, _closed, _closed_nohup, _closed_twice, _unread, _stopped, _pipe, _pipe, _full))
    line = case.chance.choice(JOBS if case.chance.random() < 0.8 else LINES)
    case.tell(f"layerwise {' '.join(line.words)}: terminal {way.__name__.strip('_')}")
    way(case, line)


class _Terminal:
    """A pseudo-terminal with a command on it."""

    def __init__(self, case: Case, line: Line, mode: str = "hangup") -> None:
        self.said = b""
        self.master, slave = pty.openpty()
        self.program = Program(case.place, line.words, streams=(slave, slave, slave), terminal=mode)
        os.close(slave)

    def read(self) -> None:
        """What is there to be read."""
        self.said += drain(self.master, 0.01)

    def read_to_end(self) -> str:
        """All that the command says until it has ended."""
        within(60.0, self._read_and_ended)
        self.read()
        return self.said.decode("utf-8", "replace")

    def _read_and_ended(self) -> bool:
        self.read()
        return self.program.process.poll() is not None

    def close(self) -> None:
        if self.master >= 0:
            os.close(self.master)
        self.master = -1


@contextmanager
def _on_terminal(case: Case, line: Line, mode: str = "hangup") -> Iterator[_Terminal]:
    terminal = _Terminal(case, line, mode)
    try:
        yield terminal
    finally:
        terminal.close()


def _closed(case: Case, line: Line, mode: str = "hangup") -> None:
    """The connection drops: writes give EIO, and SIGHUP comes."""
    old = tree(case.place.work)
    with _on_terminal(case, line, mode) as terminal:
        at_moment(case, case.references.of(line), terminal.program, terminal.read)
        before = journals.on_file(case.place)
        terminal.close()
        _goes_on(case, line, terminal.program, old, before)


def _closed_nohup(case: Case, line: Line) -> None:
    """The same where SIGHUP is ignored: writes give EIO."""
    _closed(case, line, HANGUP_OFF)


def _closed_twice(case: Case, line: Line) -> None:
    """SIGHUP first, the terminal a moment later."""
    old = tree(case.place.work)
    with _on_terminal(case, line) as terminal:
        at_moment(case, case.references.of(line), terminal.program, terminal.read)
        before = journals.on_file(case.place)
        if terminal.program.process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(terminal.program.pid, signal.SIGHUP)
        terminal.close()
        _goes_on(case, line, terminal.program, old, before)


def _goes_on(case: Case, line: Line, program: Program, old: dict[str, str], before: dict[str, bytes]) -> None:
    """The job that ran is done, as undisturbed."""
    ended = program.wait()
    if ended.code is None:
        case.complain("hang", "the command does not end without its terminal")
    check_after(case, line, ended._replace(code=None), old, before, (program.pid,), False)
    _check_done(case, before)


def _check_done(case: Case, before: dict[str, bytes]) -> None:
    folder = newest_job(case.place)
    journal = journals.journal_of(case.place)
    known = folder is not None and before.get(folder.name, b"")
    if known and journals.last_state(known) not in ("queued", "") and journals.last_state(journal) != "done":
        case.complain("cancelled by its terminal", f"the job reads {journals.last_state(journal) or 'nothing'}")


def _unread(case: Case, line: Line) -> None:
    """Nobody reads: the terminal's buffer fills, the job ends; then somebody reads."""
    _held_up(case, line, lambda terminal: None)


def _stopped(case: Case, line: Line) -> None:
    """Ctrl-S at a moment, Ctrl-Q when the job has ended."""

    def stop(terminal: _Terminal) -> None:
        at_moment(case, case.references.of(line), terminal.program, terminal.read)
        os.write(terminal.master, STOP)

    _held_up(case, line, stop)


def _held_up(case: Case, line: Line, hold: Callable[[_Terminal], None]) -> None:
    old, reference = tree(case.place.work), case.references.of(line)
    with _on_terminal(case, line) as terminal:
        hold(terminal)
        if line.follows and not within(12.0, lambda: _over(case, terminal.program)):
            case.complain("waits for its terminal", "the job does not end while its terminal is not read")
        with suppress(OSError):
            os.write(terminal.master, GO)
        said = terminal.read_to_end()
        ended = terminal.program.wait()._replace(out=said)
        _check_code(case, ended, reference.code)
        check_after(case, line, ended, old, {}, (terminal.program.pid,), False)


def _over(case: Case, program: Program) -> bool:
    """Whether the job has ended, or none was begun yet."""
    if newest_job(case.place) is None:
        return True
    state = journals.last_state(journals.journal_of(case.place))
    return state in ("done", "failed", "cancelled", "lost") or program.process.poll() is not None


def _pipe(case: Case, line: Line) -> None:
    """`| head`: the reader leaves after some bytes; the exit code is the verdict's."""
    old, reference = tree(case.place.work), case.references.of(line)
    reader, writer = os.pipe()
    wanted = case.chance.choice((0, 1, 100, 1000, 4000))
    errors = case.chance.random() < 0.3
    case.tell(f"{wanted} bytes are read{', errors too' if errors else ''}")
    err = os.open(case.place.root / "piped.err", os.O_WRONLY | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    program = Program(case.place, line.words, streams=(nothing, writer, writer if errors else err))
    for fd in (writer, err, nothing):
        os.close(fd)
    if wanted:
        os.read(reader, wanted)
    os.close(reader)
    ended = program.wait()
    ended = ended._replace(err=(case.place.root / "piped.err").read_text(errors="replace"))
    _check_code(case, ended, reference.code)
    check_after(case, line, ended, old, {}, (program.pid,), False)


def _full(case: Case, line: Line) -> None:
    """`> /dev/full`: it says that it could not say it; the job is done."""
    old = tree(case.place.work)
    full, nothing = os.open("/dev/full", os.O_WRONLY), os.open(os.devnull, os.O_RDONLY)
    err = os.open(case.place.root / "full.err", os.O_WRONLY | os.O_CREAT, 0o600)
    program = Program(case.place, line.words, streams=(nothing, full, case.chance.choice((full, err))))
    for fd in (full, nothing, err):
        os.close(fd)
    ended = program.wait()
    ended = ended._replace(err=(case.place.root / "full.err").read_text(errors="replace"))
    reference = case.references.of(line)
    if ended.code not in {reference.code, *oracles.CODES} or (ended.code == 0 and reference.code == 1):
        case.complain("exit code", f"{ended.code}, undisturbed {reference.code}: {oracles.tail(ended.said)}")
    _check_said(case, ended)
    check_after(case, line, ended._replace(code=None), old, {}, (program.pid,), False)
    journal = journals.journal_of(case.place)
    if line.follows and journals.last_state(journal) in ("cancelled", "lost"):
        case.complain("cancelled by its terminal", f"the job reads {journals.last_state(journal)}")


def _check_code(case: Case, ended: Ended, code: int) -> None:
    if ended.code is None:
        case.complain("hang", "the command does not end")
    elif ended.code != code:
        case.complain("exit code", f"{ended.code}, undisturbed {code}: {oracles.tail(ended.said)}")
    _check_said(case, ended)


def _check_said(case: Case, ended: Ended) -> None:
    case.last = ended
    if "Traceback" in ended.said or "Exception ignored" in ended.said:
        case.complain("traceback", oracles.tail(ended.said))
