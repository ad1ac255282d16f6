"""What must hold of the jobs of a workspace: nothing on file is lost, and every word of their ends is true."""

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from support.attack.case import Case
from support.attack.place import Place
from support.attack.reference import FIRST_NEW, Reference, newest_job, result_of, rows_of
from support.soak.processes import within

from layerwise._tool.backends.jobs.folder import LOG
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.workspace.store import Workspace

ENDS_WITHIN = 20.0
TRACEBACK = b"Traceback (most recent call last)"


def on_file(place: Place) -> dict[str, bytes]:
    """The whole lines of every journal."""
    found = {}
    for path in place.home.glob("jobs/*/events.jsonl"):
        with suppress(OSError):
            data = path.read_bytes()
            found[path.parent.name] = data[: data.rfind(b"\n") + 1]
    return found


def last_state(journal: bytes) -> str:
    """The state that whole lines of a journal tell; empty where they tell none."""
    states = [event["state"] for event in events_of(journal) if event.get("type") == "state"]
    return str(states[-1]) if states else ""


def events_of(journal: bytes) -> list[dict[str, Any]]:
    """What the whole lines of a journal say, without broken ones."""
    found = []
    for line in journal.splitlines():
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


def check_kept(case: Case, before: dict[str, bytes], but: Collection[str] = ()) -> None:
    """Whatever line was once on file is there still, at its place."""
    now = on_file(case.place)
    for job, journal in before.items():
        if job not in but and not now.get(job, b"").startswith(journal):
            case.complain("rows lost", f"the journal of job {job} lacks lines that it had")


def check_ends(
    case: Case, *, cancels: bool = False, reference: Reference | None = None, retries: bool = False
) -> list[JobView]:
    """Every new job has ended and says so truly; returns them as a fresh client sees them.

    cancels: somebody asked for their end; retries: somebody may have begun old ones again; reference: what the newest
    job's rows are, if it is done.
    """
    home = Workspace(case.place.home)
    within(ENDS_WITHIN, lambda: all(view.final for view in home.list_jobs()))
    views = [view for view in home.list_jobs() if view.id >= FIRST_NEW]
    for view in views:
        _check_end(case, view, cancels)
    newest = newest_job(case.place)
    for view in views:
        if reference is not None and view.state == "done" and view.folder == newest:
            _check_rows(case, view.folder, reference)
    if not retries:
        _check_old(case, home)
    return views


def _check_end(case: Case, view: JobView, cancels: bool) -> None:
    what = f"job {view.id} ({view.spec.action})"
    if not view.final:
        case.complain("never ends", f"{what} is {view.state}")
    if view.state == "done" and view.result is None:
        case.complain("not complete", f"{what} reads done without a result")
    if view.state == "cancelled" and not cancels:
        case.complain("untrue state", f"{what} reads cancelled, and nobody cancelled it")
    if view.state in ("failed", "lost") and view.card is None:
        case.complain("untrue state", f"{what} is {view.state} without a card")
    if view.started and view.ended and view.ended < view.started:
        case.complain("negative duration", what)
    check_log(case, view.folder)


def check_log(case: Case, folder: Path) -> None:
    """No traceback in what a job wrote down."""
    for path in (folder / LOG, folder / "events.jsonl"):
        with suppress(OSError):
            data = path.read_bytes()
            if TRACEBACK in data:
                text = data[data.rindex(TRACEBACK) :][:4000].decode("utf-8", "replace").replace("\\n", "\n")
                case.complain("traceback", f"{path.name}: {text.strip().splitlines()[-4:]}"[:900])


def _check_rows(case: Case, folder: Path, reference: Reference) -> None:
    missing = reference.rows - rows_of(folder)
    if missing:
        case.complain("false rows", f"done, and {missing.total()} rows are not those undisturbed: {min(missing)[:300]}")
    result = result_of(folder)
    other = {key: (value, result.get(key)) for key, value in reference.result.items() if result.get(key) != value}
    if other:
        case.complain("false result", f"done, but not as undisturbed: {str(other)[:400]}")


_OLD = {1: "done", 2: "done", 3: "failed", 4: "lost"}


def _check_old(case: Case, home: Workspace) -> None:
    states = {view.id: view.state for view in home.list_jobs() if view.attempt == 1}  # a key may ask for another
    for job, state in _OLD.items():
        if job in states and states[job] != state:
            case.complain("untrue state", f"job {job}, {state} before, reads {states[job]}")


def until_journal(
    place: Place, lines: int, running: Callable[[], bool], meanwhile: Callable[[], None] = lambda: None
) -> bytes:
    """Wait until the first new job's journal has so many lines, or nothing runs; the journal then."""

    def reached() -> bool:
        meanwhile()
        return not running() or journal_of(place).count(b"\n") >= lines

    within(60.0, reached)
    return journal_of(place)


def journal_of(place: Place) -> bytes:
    """The whole lines of the first new job's journal; nothing where there is none."""
    folder = newest_job(place)
    return b"" if folder is None else on_file(place).get(folder.name, b"")
