"""What an action has in the worker: its parameters, its journal, and somebody to ask."""

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.regular import read_regular
from layerwise._tool.backends.jobs.folder import REPLIES, raw_spec
from layerwise._tool.backends.jobs.journal.earlier_attempts import Earlier, Stale, typed
from layerwise._tool.backends.jobs.journal.events import MAX_SPILL, EventWriter
from layerwise._tool.backends.jobs.journal.json_lines import LineReader
from layerwise._tool.backends.text import shown

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.identity import Identity

Result = TypeVar("Result")
_OF_THE_JOURNAL = ("event-", "reply-")
_PROGRESS_EVERY = 0.05
_LOOK_AGAIN = 10.0
_LOOK_BESIDE = 3.0
_SPILLED = r"reply-[0-9a-f]{32}\.json"


class JobContext:
    """The worker's side of a job. Events may be written from any thread; every one is on file when the call
    returns.
    """

    def __init__(self, folder: Path, attempt: int) -> None:
        self.folder = folder
        self.artifacts = folder / "artifacts"
        self.attempt = attempt
        self.raw = raw_spec(folder)
        self.params: dict[str, Any] = self.raw.get("params", {})
        self.writer = EventWriter(folder)
        self._earlier: Earlier | None = None
        self._taken_up = attempt == 1
        self._questions = 0
        self._last_progress = 0.0
        self._last_unit = ""

    @property
    def spec(self) -> Any:
        """The job's JobSpec."""
        from layerwise._tool.backends.jobs.spec import load_spec

        return load_spec(self.folder)

    def progress(self, done: float, total: float | None, unit: str = "", text: str = "") -> None:
        """Say how far the work is. At most 20 times a second, and always when it is complete or counts anew."""
        now = time.monotonic()
        if now - self._last_progress >= _PROGRESS_EVERY or done == total or unit != self._last_unit:
            self._last_progress, self._last_unit = now, unit
            self.writer.write("progress", done=done, total=total, unit=unit, text=text)

    def log(self, text: str, level: str = "info") -> None:
        self.writer.write("log", level=level, text=text)

    def warn(self, text: str) -> None:
        self.writer.write("warning", text=text)

    def row(self, table: str, row: object) -> None:
        """Add a finished row (a msgspec Struct, or a dict) to a table. It survives whatever happens to this process."""
        if not self._taken_up:
            self.drop_rows()
        self.writer.write("row", table=table, row=row)

    def previous_rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table that earlier attempts of this job have finished and that `resumed` did not drop."""
        self._taken_up = True
        return self.earlier.rows(table)

    @property
    def earlier(self) -> Earlier:
        """What earlier attempts left."""
        if self._earlier is None:
            self._earlier = Earlier(self.folder, self.attempt)
        return self._earlier

    def drop_rows(self, kept: Sequence[str] = ()) -> None:
        """Have rows of earlier attempts count for nothing: this one makes them again. Those of `kept` tables stay."""
        self._taken_up = True
        if set(self.earlier.tables) - set(kept):
            self.writer.write("dropped", attempt=self.attempt, kept=list(kept))
            self.earlier.drop(list(kept))

    def resumed(self, work: Callable[[], Result], tables: Sequence[str] | None = None) -> Result:
        """Do the work, with rows of earlier attempts if what the request reads is as it was; else they are dropped,
        which is told. tables: those that are taken up (None: all); of others this attempt makes all rows.

        LayerwiseError if it is not the same any more when the work is done: its rows are not of one model then.
        """
        import msgspec

        from layerwise._tool.backends.jobs.identity import differences, identity, identity_now, touched

        now = identity(self.params)
        if self.earlier.done:  # who asks again wants what it makes made again
            self.log(f"attempt {self.earlier.attempt} was done: all is made anew")
            self._clear()
        why = self._mismatch(now)
        if why:
            self._drop_all(why)
        else:
            self.drop_rows(self.earlier.tables if tables is None else tables)
        self.writer.write("identity", attempt=self.attempt, **msgspec.structs.asdict(now))
        try:
            result = work()
        except Stale as error:
            self._drop_all(str(error))
            result = work()
        then = identity_now(now)
        changed = differences(now, then, meanwhile=True)
        if changed:
            self.writer.write("identity", attempt=self.attempt, changed=changed)
            told = ", ".join(changed)
            raise LayerwiseError(f"{told} changed while the job ran: nothing can be concluded; run it again")
        if maybe := touched(now, then):
            self.writer.write("identity", attempt=self.attempt, changed=maybe)
            told = "the time of the inode changed while the job ran, as a new name or mode does"
            self.log(f"{', '.join(maybe)}: {told}", "verbose")
        return result

    def _drop_all(self, why: str) -> None:
        """Nothing of earlier attempts is used: no row, no file that they made for themselves."""
        self.warn(f"{why}: its {self.earlier.count} rows are not used")
        self._clear()

    def _clear(self) -> None:
        self.drop_rows()
        for path in self.artifacts.iterdir() if self.artifacts.is_dir() else ():
            if path.is_dir():
                from shutil import rmtree

                rmtree(path, ignore_errors=True)
            elif not path.name.startswith(_OF_THE_JOURNAL):
                path.unlink(missing_ok=True)

    def _mismatch(self, now: "Identity") -> str:
        """Why the rows there are cannot be used, "" if they can or there are none."""
        from layerwise._tool.backends.jobs.identity import Identity, differences

        earlier = self.earlier
        if not earlier.count:
            return ""
        known = typed([earlier.identity], Identity)
        if not known:
            return f"attempt {earlier.attempt} did not write down what it ran"
        if now.code:
            return f"what {shown(Path(now.code[0]).name, 120)} reads is not known"
        changed = differences(known[0], now)
        if changed:
            return f"{', '.join(changed)} changed since attempt {earlier.attempt}"
        return f"what attempt {earlier.attempt} ran changed meanwhile" if earlier.mixed else ""

    def ask(self, question: object) -> dict[str, Any]:
        """Put a question to whoever looks at the job, and wait for the answer, for days if need be.

        question: a Struct or dict with "text", what is asked, and "choices", the words that answer it (none: any text
        does); all else is shown with it. The app and `layerwise attach` answer {"answer": word}.
        """
        self._questions += 1
        name = f"{self.attempt}.{self._questions}"
        self.writer.write("question", id=name, question=question)
        self.writer.write("state", state="waiting", attempt=self.attempt)
        for reply in self._received("reply", None):
            if reply.get("question") == name:
                break
        self.writer.write("state", state="running", attempt=self.attempt)
        data = reply.get("data")
        return data if isinstance(data, dict) else {}

    def replies(self, idle: float | None = None, beside: int = 0) -> Iterator[dict[str, Any]]:
        """Requests of clients to this attempt, as they come; ends when none came for `idle` seconds.

        beside: a process, not 0: it ends also within some seconds of that one's end.
        """
        return self._received("request", idle, beside)

    def _received(self, kind: str, idle: float | None, beside: int = 0) -> Iterator[dict[str, Any]]:
        from layerwise._tool.backends.jobs.waiting.watch import Watch

        reader, watch = LineReader(self.folder / REPLIES), Watch()
        watch.add(self.folder / REPLIES)
        last = time.monotonic()
        try:
            longest = _LOOK_BESIDE if beside else _LOOK_AGAIN
            while (idle is None or time.monotonic() - last < idle) and (not beside or _is_there(beside)):
                for reply in reader.read():
                    if reply.get("type") != kind or reply.get("attempt") != self.attempt:
                        continue
                    whole = whole_reply(self.folder, reply)
                    if whole:
                        yield whole
                        last = time.monotonic()
                watch.wait(longest if idle is None else min(longest, last + idle - time.monotonic()))
        finally:
            watch.close()


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def whole_reply(folder: Path, reply: dict[str, Any]) -> dict[str, Any]:
    """A reply with the data that was too long for a line put back; {} where that cannot be read."""
    name = reply.get("spill")
    if name is None:
        return reply
    import json

    try:
        if not isinstance(name, str) or re.fullmatch(_SPILLED, name) is None:
            return {}
        found = json.loads(read_regular(folder / "artifacts" / name, MAX_SPILL, own=True))
    except (OSError, ValueError, RecursionError):
        return {}
    return {**reply, **found} if isinstance(found, dict) else {}
