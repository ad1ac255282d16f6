"""Jobs under a supervisor of their own: killed, looked at from elsewhere, and begun again until they are done."""

import os
import signal
from contextlib import suppress

from support.attack import journals, oracles
from support.attack.case import Case
from support.attack.lines import BY_NAME, LONG_JOBS
from support.attack.place import tree
from support.attack.programs import Program, run
from support.attack.reference import Reference

LINES = (*LONG_JOBS, "reduce-stray")
_OVER = ("done", "failed", "cancelled", "lost")


def attack(case: Case) -> None:
    """Start it detached, follow it, kill somebody, retry."""
    line = BY_NAME[case.chance.choice(LINES)]
    reference = case.references.of(line)
    old = tree(case.place.work)
    words = _detached(line.words)
    case.tell(f"layerwise {' '.join(words)}")
    oracles.check_said(case, run(case.place, words), (0,))
    follower = Program(case.place, ("attach", "5"))
    cancels = _disturb(case, reference)
    journals.check_ends(case, cancels=cancels, reference=reference)
    ended = follower.wait()
    _check_follower(case, ended.code, reference)
    oracles.check_said(case, ended)
    before = journals.on_file(case.place)
    if journals.last_state(before.get("5", b"")) != "done":
        _retry(case, reference)
    journals.check_kept(case, before)
    oracles.check_made(case, reference, ended._replace(code=None), old, tree(case.place.work))
    oracles.check_temporary(case, reference, tree(case.place.work))
    oracles.check_left(case)
    oracles.check_inputs(case)


def _detached(words: tuple[str, ...]) -> tuple[str, ...]:
    """--detach stands before --check, which takes all that follows."""
    at = words.index("--check") if "--check" in words else len(words)
    return (*words[:at], "--detach", *words[at:])


def _disturb(case: Case, reference: Reference) -> bool:
    """Kill or cancel at a line of the journal; whether it was cancelled."""
    lines = case.chance.randint(1, max(reference.lines, 1))
    victims = case.chance.choice((("pid",), ("supervisor",), ("pid", "supervisor"), ("cancel",), ()))
    number = case.chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    case.tell(f"at line {lines}: {signal.Signals(number).name} to {' and '.join(victims) or 'nobody'}")
    journals.until_journal(case.place, lines, lambda: not _over(case))
    if victims == ("cancel",):
        oracles.check_said(case, run(case.place, ("jobs", "cancel", "5")))
        return True
    running = [event for event in journals.events_of(journals.journal_of(case.place)) if "supervisor" in event]
    if running and not _over(case):
        for victim in victims:
            with suppress(ProcessLookupError):
                os.kill(running[-1][victim], number)
    return "supervisor" in victims and number == signal.SIGTERM


def _over(case: Case) -> bool:
    return journals.last_state(journals.journal_of(case.place)) in _OVER


def _check_follower(case: Case, code: int | None, reference: Reference) -> None:
    state = journals.last_state(journals.journal_of(case.place))
    allowed = {"done": reference.code, "cancelled": 130}.get(state, 1)
    if code != allowed:
        case.complain("false verdict", f"attach ends with {code} when the job is {state}, undisturbed {reference.code}")


def _retry(case: Case, reference: Reference) -> None:
    """Begun again it is done, as undisturbed."""
    oracles.check_said(case, run(case.place, ("jobs", "retry", "5")), (0,))
    ended = run(case.place, ("attach", "5"))
    case.tell("retried")
    oracles.check_said(case, ended, (reference.code,))
    state = journals.last_state(journals.journal_of(case.place))
    if state != "done":
        case.complain("not made again", f"retried, the job is {state}: {oracles.tail(ended.said)}")
