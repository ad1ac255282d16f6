"""A worker that imports what most jobs need while the command line is still being understood."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.processes.spare import SpareWorker

_NO_JOB_HERE = frozenset({"-h", "--help", "--detach"})
_waiting: "list[SpareWorker]" = []


@contextmanager
def worker_ahead(words: Sequence[str]) -> Iterator[None]:
    """Inside, a worker stands ready for the first job that is run here; it ends unused where none is.

    words: of the command line; with some of them nothing is run here. Call it in a thread that outlives the job.
    """
    if _NO_JOB_HERE.isdisjoint(words):
        start_worker()
    try:
        yield
    finally:
        spare = take_worker()
        if spare is not None:
            spare.dismiss()


def take_worker() -> "SpareWorker | None":
    """The worker that stands ready, which is the caller's from here on."""
    return _waiting.pop() if _waiting else None


def start_worker() -> None:
    """Start it; where that fails, so will the job's own worker, which says why."""
    from layerwise._tool.backends.jobs.processes.spare import SpareWorker
    from layerwise._tool.backends.jobs.workspace.root import default_root
    from layerwise._tool.debugtools import ACTIONS

    with suppress(OSError, LayerwiseError):
        _waiting.append(SpareWorker(ACTIONS, default_root() / "jobs"))
