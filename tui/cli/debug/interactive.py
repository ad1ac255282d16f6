"""A search on a plain terminal: the questions as Polygraphy puts them, and more answers."""

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from layerwise._tool.backends.log import CRITICAL, START, WARNING, Log, put
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.asking import Asker, read_input
from layerwise._tool.tui.cli.debug.report import SearchReport, measured_text
from layerwise._tool.tui.cli.follow import EventFollower, run_interruptibly
from layerwise._tool.tui.cli.progress import Bar, NoBar
from layerwise._tool.tui.cli.reports import Reporter
from layerwise._tool.tui.cli.submit import card_text, concluding, exit_code, submit
from layerwise._tool.tui.state.questions import Question

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec

_LETTERS = {"p": "good", "f": "bad", "g": "good", "b": "bad", "s": "skip", "u": "undo", "a": "auto"}
_HELP = "p (g): it passed   f (b): it failed   s: skip it   u: take the last answer back   a: let the machine finish"


def converse(job: "JobSpec", report: SearchReport, log: Log, reporter: Reporter | None = None) -> int:
    """Run a search that asks, under a supervisor of its own: its question outlives this terminal. The exit code."""
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    log.say(START, "Starting interactive debugging session since no `--check` command was provided", source="tools")
    number = submit(job)
    try:
        answered = run_interruptibly(_converse(number, report, log))
    except KeyboardInterrupt:
        answered = False
    if not answered:
        log.say(WARNING, f"Job {number} waits for an answer: layerwise attach {number}, or jobs cancel {number}")
        return 130
    view = Workspace().view(number)
    if view.card:
        log.say(CRITICAL, card_text(view.card, view.id))
    code = exit_code(view)
    return reporter.folder(number, code) if reporter else code


async def _converse(job: int, report: SearchReport, log: Log) -> bool:
    """Report and ask until the job has ended; False if the answers end before."""
    asker = VerdictAsker(log, NoBar())
    following = asyncio.create_task(EventFollower(job, concluding(report.event, log, "debug"), None, asker).run())
    ended = asyncio.create_task(asker.ended.wait())
    await asyncio.wait({following, ended}, return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    if following.done():
        following.result()
        return True
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following
    return False


class VerdictAsker(Asker):
    """Asks as Polygraphy does, of a terminal or of lines that a script writes. ended: set at their end."""

    def __init__(self, log: Log, bar: Bar) -> None:
        super().__init__(log, bar)
        self.ended = asyncio.Event()
        self._lines = Lines()
        self._told = False

    async def ask(self, question: Question) -> str | None:
        """The answer: the first letter of a line. Questions that are not about a verdict are put as any other."""
        if not {"good", "bad"} <= set(question.words):
            return await super().ask(question)
        if not self._told:
            self._log.info(_HELP)
            self._told = True
        self._suggest(question)
        prompt = f">>> {shown(question.text).replace('pass or fail', '[p]ass or [f]ail')} "
        with self._bar.hidden():
            while True:
                put(prompt, end="")
                line = await self._lines.next()
                if line is None:
                    put()
                    self.ended.set()
                    return None
                word = _LETTERS.get(line.strip()[:1].lower(), "")
                if word in question.words:
                    return word
                prompt = ">>> Please choose either: 'p' or 'f': "

    def _suggest(self, question: Question) -> None:
        beside = question.beside
        if beside.artifact:
            listed = ", ".join(f"{what} {shown(path)}" for what, path in beside.artifact.items())
            self._log.info(f"To try: {listed}")
        if beside.suggestion:
            text = measured_text(beside.measured)
            self._log.info(f"The machine finds it {beside.suggestion}" + (f": {text}" if text else ""))


class Lines:
    """Lines of the standard input, waited for without blocking the loop."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._rest = b""

    async def next(self) -> str | None:
        """The next line, None at the end of the input."""
        while b"\n" not in self._rest:
            data = await self._read()
            if not data and not self._rest:
                return None
            self._rest += data or b"\n"
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(self._fd, lambda: None if ready.done() else ready.set_result(None))
        except PermissionError:  # a file or /dev/null, never to be waited for
            return read_input(self._fd)
        try:
            await ready
        finally:
            loop.remove_reader(self._fd)
        return read_input(self._fd)
