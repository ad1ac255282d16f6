"""Kills: a signal to the worker, the command, or all of them, at a moment of the seed."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from support.attack import journals, oracles, processes
from support.attack.case import Case
from support.attack.lines import JOBS, LINES, Line
from support.attack.place import tree
from support.attack.programs import Ended, Program, run
from support.attack.reference import Reference, newest_job

NUMBERS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
VICTIMS = ("command", "command", "worker", "all")
_AGAIN = 0.35  # the share of attempts after which the command is made again


def attack(case: Case) -> None:
    """Kill, look, and sometimes make the same command again."""
    line = case.chance.choice(JOBS if case.chance.random() < 0.7 else LINES)
    victim, number = case.chance.choice(VICTIMS), case.chance.choice(NUMBERS)
    reference = case.references.of(line)
    old = tree(case.place.work)
    program = Program(case.place, line.words)
    case.tell(f"layerwise {' '.join(line.words)}: {signal.Signals(number).name} to {victim}")
    at_moment(case, reference, program)
    before = journals.on_file(case.place)
    hit = shoot(case, program, victim, number)
    ended = program.wait()
    if victim == "all":  # the guard too: then it is the next look that ends what is left
        run(case.place, ("jobs", "list"))
    _check_code(case, reference, ended, hit, victim, number)
    inner = line.name == "triage"  # whose worker supervises jobs of its own
    cancels = hit and (victim != "worker" or inner) and number in (signal.SIGINT, signal.SIGTERM)
    check_after(case, line, ended, old, before, (program.pid,), cancels)
    if hit and victim == "command" and number == signal.SIGHUP:
        check_goes_on(case, before)
    if case.chance.random() < _AGAIN:
        check_again(case, line)


def at_moment(case: Case, reference: Reference, program: Program, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Wait for the moment: a part of the undisturbed time, or a number of lines of the journal."""
    if case.chance.random() < 0.5 and reference.lines:
        lines = case.chance.randint(1, reference.lines)
        case.tell(f"at line {lines} of {reference.lines}")
        journals.until_journal(case.place, lines, lambda: program.process.poll() is None, meanwhile)
    else:
        part = round(case.chance.uniform(0.0, 1.1), 3)
        case.tell(f"at {part} of its time")
        end = time.monotonic() + part * reference.seconds
        while (rest := end - time.monotonic()) > 0:
            meanwhile()
            time.sleep(min(0.01, rest))


def shoot(case: Case, program: Program, victim: str, number: int) -> bool:
    """Send the signal; whether somebody was there to get it."""
    if victim == "command":
        found = [program.pid] if program.process.poll() is None else []
    elif victim == "worker":
        found = workers(case)
    else:
        found = [process.pid for process in processes.of(case.place, program.pid)]
    hit = False
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            hit = True
    return hit


def workers(case: Case) -> list[int]:
    """The worker that the journal of the newest job names, while it has not ended."""
    journal = journals.journal_of(case.place)
    events = [event for event in journals.events_of(journal) if "pid" in event]
    over = journals.last_state(journal) in ("done", "failed", "cancelled", "lost")
    return [] if over or not events else [events[-1]["pid"]]


def _check_code(case: Case, reference: Reference, ended: Ended, hit: bool, victim: str, number: int) -> None:
    allowed = {reference.code}
    if hit:
        allowed |= {1} if victim == "worker" else {-number, 128 + number, 130}
    if hit and victim == "all":
        allowed |= {1}
    oracles.check_said(case, ended, allowed, killed=hit and ended.code not in (None, *oracles.CODES))
    if reference.code == 1 and ended.code == 0:
        case.complain("false verdict", f"exit code 0, undisturbed 1: {oracles.tail(ended.said)}")


def check_after(
    case: Case, line: Line, ended: Ended, old: dict[str, str], before: dict[str, bytes], sessions: tuple[int, ...],
    cancels: bool,
) -> None:  # fmt: skip
    """What holds after any end of a command."""
    reference = case.references.of(line)
    pruned = ("1",) if line.name == "jobs-prune" else ()
    oracles.check_left(case, *sessions)
    journals.check_ends(case, cancels=cancels, reference=reference)
    journals.check_kept(case, before, pruned)
    oracles.check_inputs(case)
    oracles.check_made(case, reference, ended, old, tree(case.place.work))
    oracles.check_private(case)


def check_goes_on(case: Case, before: dict[str, bytes]) -> None:
    """A job that ran when its terminal went away is done."""
    journal = journals.journal_of(case.place)
    folder = newest_job(case.place)
    ran = folder is not None and journals.last_state(before.get(folder.name, b"")) == "running"
    if ran and journals.last_state(journal) != "done":
        case.complain("cancelled by its terminal", f"the job reads {journals.last_state(journal)}")


def check_again(case: Case, line: Line) -> None:
    """The same command again is what it is undisturbed, and leaves nothing of the first one behind."""
    reference = case.references.of(line)
    if line.name == "jobs-prune" and not (case.place.home / "jobs" / "1").exists():
        return
    old = tree(case.place.work)
    for path in case.place.work.glob("made/*"):
        if not path.name.startswith(".") and line.name == "bundle":
            return  # whole: another name is asked for
    ended = run(case.place, line.words)
    case.tell("the same again")
    oracles.check_said(case, ended)
    if ended.code != reference.code:
        case.complain(
            "not made again", f"exit code {ended.code}, undisturbed {reference.code}: {oracles.tail(ended.said)}"
        )
    now = tree(case.place.work)
    oracles.check_made(case, reference, ended, old, now)
    oracles.check_temporary(case, reference, now)
    oracles.check_left(case)
