"""How a search begins: the iteration that fails, the reference's tensors of it, the verdict on the whole."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.debugtools.compare.sides.engine import check_engine_side
from layerwise._tool.debugtools.compare.sides.marks import any_marks
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.search.driver.history import VerdictRows
from layerwise._tool.debugtools.search.judges.comparison import ComparisonJudge
from layerwise._tool.debugtools.search.judges.original import Original, stronger
from layerwise._tool.debugtools.search.judges.protocol import Judgement
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import NoteRow
from layerwise._tool.debugtools.search.spec import FlakySpec
from layerwise._tool.debugtools.search.strategies.flaky import settled
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_MOST = 1000  # runs to find out whether something fails


@dataclass
class Start:
    """subject: None if nothing fails. original: None where a command or a person has yet to say. error: what the
    suspect says where it cannot run.
    """

    subject: Subject | None
    original: Judgement | None
    error: str = ""


@dataclass(frozen=True)
class Noise:
    """How often verdicts are wrong, and the chance of a wrong answer that is left."""

    chances: FlakySpec
    delta: float


def until_settled(ask: Callable[[int], Judgement], noise: Noise) -> tuple[list[Judgement], Verdict | None]:
    """Ask, the number of the question from 1 on, until the answers settle it or one is a skip; all of them, and what
    they come to, None if nothing.
    """
    found: list[Judgement] = []
    verdict = None
    while verdict is None and len(found) < _MOST:
        found.append(ask(len(found) + 1))
        if found[-1].verdict is Verdict.SKIP:
            break
        bad = sum(each.verdict is Verdict.BAD for each in found)
        verdict = settled(bad, len(found) - bad, *noise.chances.rates, noise.delta)
    return found, verdict


class Notes:
    """Rows of table `search`: what a later attempt must take over, not find out anew. known: all of them together."""

    def __init__(self, context: "JobContext") -> None:
        self._context = context
        self.known = NoteRow()
        for row in typed(context.previous_rows("search"), NoteRow):
            self._take(row)

    def put(self, row: NoteRow) -> None:
        """Note what the row has."""
        self._take(row)
        self._context.row("search", row)

    def _take(self, row: NoteRow) -> None:
        self.known = msgspec.structs.replace(self.known, **msgspec.to_builtins(row))


def begin(
    context: "JobContext", setup: Setup, history: VerdictRows, notes: Notes, compared: bool, noise: Noise | None = None
) -> Start:
    """Find the first iteration that fails. compared: by the two sides; else the first one is taken. noise: of a fault
    that comes and goes: each is tried anew until it is known whether it fails.
    """
    sides = Original(context, setup)
    last: Judgement | None = history.find("original")
    for number, feed in sides.feeds():
        if notes.known.iteration not in (None, number):
            continue
        start = _iteration(context, setup, sides, number, feed, noise) if compared else Start(None, last)
        if start.original is not None:
            last = stronger(last, start.original)
        if compared and start.original is not None and start.original.verdict is not Verdict.BAD:
            if start.subject is not None:
                start.subject.close()
            continue
        if notes.known.iteration is None:
            notes.put(NoteRow(iteration=number))
        setup.close()  # the whole models' sessions: candidates have their own
        check_engine_side(sides.suspect, context.warn)
        start.subject = start.subject or Subject(context, setup, number, feed)
        return start
    return Start(None, last)


def _iteration(
    context: "JobContext", setup: Setup, sides: Original, number: int, feed: Feed, noise: Noise | None
) -> Start:
    """By the outputs as configured; by the nodes that marked tensors need, where tensors are marked."""
    if not any_marks(setup.spec.marks):
        original = sides.judge(number, feed) if noise is None else _settled(setup, sides, number, feed, noise)
        return Start(None, original, sides.error)
    subject = Subject(context, setup, number, feed)
    return Start(subject, ComparisonJudge(subject).judge(subject.artifact(subject.items)))


def _settled(setup: Setup, sides: Original, number: int, feed: Feed, noise: Noise) -> Judgement:
    """The verdict of as many runs, each with sessions of its own, as settle it; of a bad one what it measured."""

    def run(times: int) -> Judgement:
        if times > 1:
            setup.close()
        return sides.judge(number, feed)

    found, verdict = until_settled(run, noise)
    return next(each for each in reversed(found) if each.verdict is (verdict or found[-1].verdict))
