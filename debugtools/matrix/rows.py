"""Rows and results of a matrix, as its journal and its result file hold them."""

from typing import Literal

from msgspec import Struct

from layerwise._tool.debugtools.baseline.repetition import Repeated

Verdict = Literal["passed", "failed", "error", "cancelled", "lost", "refused", "elsewhere"]
KEPT = frozenset({"passed", "failed"})
"""Verdicts that are final for a key; of errors only those that a crash is (CRASHES)."""
CRASHES = frozenset({"signal", "oom", "timeout", "exception"})
"""Kinds of failure reports that come from the cell itself; another attempt would fail in the same way."""


class Receipt(Struct, frozen=True, kw_only=True):
    """What comes back of a cell: everything else stays in its jobs' folders.

    verdict: passed, failed (it did what it was asked to and found a fault), error (its job failed; kind says how),
    cancelled, lost (its process was killed from outside, again and again), refused (versions differ, or files),
    elsewhere (another process runs it now). kind: of a failure, flaky or unsure where repetitions say so.
    job, path: the cell's own job, its folder; locate, bundle: what followed. gaps: tensors or iterations that were not
    compared though nobody asked for that. digest: of the rows, "" where they hold times. seconds: all its jobs took.
    text: what was found, in a sentence; suspect: the node that locating names; repeated: what repetitions say of a
    failure near its bound. pending: what was to follow a failure and could not be carried out, with the reason.
    ended: unix seconds. versions, machine: what and who computed it.
    """

    key: str
    verdict: Verdict
    kind: str = ""
    job: int = 0
    path: str = ""
    locate: int = 0
    bundle: str = ""
    gaps: int = 0
    digest: str = ""
    seconds: float = 0.0
    text: str = ""
    suspect: str = ""
    repeated: Repeated | None = None
    pending: str = ""
    ended: float = 0.0
    versions: dict[str, str] = {}
    machine: str = ""
    losses: int = 0

    @property
    def kept(self) -> bool:
        """Whether the cell is finished: it is not run again as long as its key is the same."""
        if self.pending:
            return False
        return self.verdict in KEPT or self.verdict == "lost" or (self.verdict == "error" and self.kind in CRASHES)


class CellRow(Struct, frozen=True, kw_only=True):
    """A row of table `cells`: a cell that has ended. number: its place in the matrix. reused: finished before this run.

    parts: hashes of what its key is made of (model, feeds, spec), so that a later run can tell what has changed.
    """

    number: int
    model: str
    side: str
    feed: str
    action: str
    receipt: Receipt
    reused: bool = False
    parts: dict[str, str] = {}

    @property
    def id(self) -> tuple[str, str, str, str]:
        """What tells it from the others of a matrix, whatever its key."""
        return self.model, self.side, self.feed, self.action


class StartRow(Struct, frozen=True):
    """A row of table `started`: the job of a cell that runs."""

    number: int
    job: int


class Change(Struct, frozen=True, kw_only=True):
    """A cell that is not as it was. was, now: verdicts, "" for a cell that was not or is not there. why: what of its
    key has changed, in words; empty for another verdict on the same."""

    model: str
    side: str
    feed: str
    action: str
    was: str
    now: str
    why: list[str] = []


class MatrixResult(Struct, frozen=True, kw_only=True):
    """The result of a matrix, also its result file. passed: all cells did. started: unix seconds. counts: by verdict.

    run, reused: cells that were run now, and finished before. against: the earlier run's file, changes: what differs.
    subset: other cells of the file were left out. conclusion: what was found, in a sentence.
    """

    version: int = 1
    name: str = ""
    file: str = ""
    started: float = 0.0
    seconds: float = 0.0
    passed: bool = False
    counts: dict[str, int] = {}
    run: int = 0
    reused: int = 0
    cells: list[CellRow] = []
    versions: dict[str, str] = {}
    against: str = ""
    changes: list[Change] = []
    subset: bool = False
    conclusion: str = ""
    path: str = ""
