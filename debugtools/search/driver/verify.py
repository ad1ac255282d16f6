"""What a search leaves: the nodes that were found, verified, written, told.

While it goes on, the smallest failing model so far is on disk; in the end the nearest one that passes too.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.driver.handler import Files
from layerwise._tool.debugtools.search.driver.history import VerdictRows
from layerwise._tool.debugtools.search.judges.check_folder import write_golden, write_inputs
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judge, Judgement
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import BestRow, CandidateRow, Contiguous, Culprits, Node, Numbers
from layerwise._tool.debugtools.search.spec import FlakySpec
from layerwise._tool.debugtools.search.strategies.flaky import settled
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


_PATIENCE = 10.0  # the next model is written once this many times as long has passed as the last one took


class Smallest:
    """The smallest set of a search so far, its model on disk at `path`. found: the set, None: nothing yet."""

    def __init__(self, context: "JobContext", path: Path) -> None:
        self._context, self.path = context, path
        self.found: tuple[int, ...] | None = None
        self.measured = Numbers()
        self._written: tuple[int, ...] | None = None
        self._next = 0.0

    def take(self, found: Sequence[int], measured: Numbers) -> None:
        """A candidate shows what is searched."""
        if self.found is None or len(found) < len(self.found):
            self.found, self.measured = tuple(found), measured

    def save(self, *, now: bool = True) -> None:
        """Write the model if it is not the one on disk; unless it must be `now`, only where writing keeps up."""
        if self.found is None or self.found == self._written or (not now and time.monotonic() < self._next):
            return
        started = time.monotonic()
        try:
            self._write(self.found)
        except OSError as error:
            raise LayerwiseError(f"{shown(str(self.path))} cannot be written: {error.strerror or error}") from error
        self._next = time.monotonic() + _PATIENCE * (time.monotonic() - started)
        self._written = self.found
        nodes, labels = self._told(self.found)
        row = BestRow(list(nodes[:200]), len(nodes), list(labels[:20]), str(self.path), self.measured)
        self._context.row("best", row)

    def _write(self, found: tuple[int, ...]) -> None:
        raise NotImplementedError

    def _told(self, found: tuple[int, ...]) -> tuple[Sequence[int], Sequence[str]]:
        """Its nodes, and names for at least the first of them."""
        raise NotImplementedError


class Best(Smallest):
    """The nodes that fail. good: where the nearest model goes that passes, None: nowhere."""

    def __init__(self, context: "JobContext", subject: Subject, path: Path, good: Path | None) -> None:
        super().__init__(context, path)
        self._subject, self._good_path = subject, good
        self._good: list[tuple[int, ...]] = []

    def clear(self) -> None:
        """Nothing has failed yet: the search begins anew."""
        self.found, self.measured = None, Numbers()
        self._good.clear()

    def good(self, nodes: Sequence[int]) -> None:
        """A candidate passed."""
        if self._good_path is not None:
            self._good.append(tuple(nodes))

    def _write(self, found: tuple[int, ...]) -> None:
        write_model(self._subject.artifact(found), self.path)

    def _told(self, found: tuple[int, ...]) -> tuple[Sequence[int], Sequence[str]]:
        return found, [self._subject.describe(i).node for i in found[:20]]

    def save_good(self) -> str | None:
        """Write the largest model that passed of those smaller than the failing one, else the smallest that passed."""
        size = len(self.found or ())
        smaller = [nodes for nodes in self._good if len(nodes) < size]
        nearest = max(smaller, key=len, default=None) or min(self._good, key=len, default=None)
        if self._good_path is None or nearest is None:
            return None
        write_model(self._subject.artifact(nearest), self._good_path)
        return str(self._good_path)


def write_model(artifact: Artifact, path: Path) -> None:
    """Write a candidate to where a user keeps it, whole or not at all."""
    try:
        make_folder(path.parent)
        artifact.write(path, atomic_writer)
    except OSError as error:
        raise LayerwiseError(f"{shown(str(path))} cannot be written: {error.strerror or error}") from error


_STEADY = FlakySpec(0.0, 0.0)
_MOST = 1000


class Verifier:
    """Asks once more about what was found, whatever was said before; as often as a fault that comes and goes wants.

    judge: None where a person's word stands. noise: how often verdicts are wrong, None where they are not.
    delta: chance of a wrong answer that is left.
    """

    def __init__(
        self,
        context: "JobContext",
        subject: Subject,
        judge: Judge | None,
        history: VerdictRows,
        files: Files,
        noise: FlakySpec | None,
        delta: float,
    ) -> None:
        self._context, self._subject, self._judge = context, subject, judge
        self._history, self._files, self._delta = history, files, delta
        self._noise = noise or _STEADY

    def judge(self, nodes: Sequence[int], phase: str) -> Judgement:
        """The verdict on `nodes` alone."""
        miss, wrong = self._noise.rates
        counts = {Verdict.BAD: 0, Verdict.GOOD: 0}
        for number in range(1, _MOST + 1):
            found = self._once(nodes, phase if number == 1 else f"{phase}#{number}")
            if found.verdict is Verdict.SKIP:
                return found
            counts[found.verdict] += 1
            verdict = settled(counts[Verdict.BAD], counts[Verdict.GOOD], miss, wrong, self._delta)
            if verdict is not None:
                break
        return found if number == 1 else replace(found, verdict=verdict or found.verdict, note=_counted(counts))

    def _once(self, nodes: Sequence[int], phase: str) -> Judgement:
        """One verdict, from an earlier attempt if it had come so far."""
        earlier = self._history.find(phase)
        if earlier is not None:
            return earlier
        if self._judge is None:
            return Judgement(Verdict.BAD, "person")
        made = self._subject.artifact(nodes)
        place = self._subject.describe(nodes[0]) if len(nodes) == 1 else Node()
        row = CandidateRow(phase, phase, len(made.nodes), place.i, place.node, place.op)
        judgement = self._judge.judge(replace(made, about=row))
        self._history.add(row, judgement, "")
        self._files.take(judgement, "")
        return judgement

    def found(self, number: int, nodes: Sequence[int], path: Path, minimal: bool) -> Culprits:
        """Verify a failing set, also with the holes between its nodes closed, and write it to `path`."""
        judgement = self.judge(nodes, f"verify-{number}")
        contiguous = self._subject.cuts.contiguous(nodes)
        whole = judgement
        if len(contiguous) > len(nodes):
            whole = self.judge(contiguous, f"verify-{number}-contiguous")
        artifact = self._subject.artifact(nodes)
        write_model(artifact, path)
        beside = self._context.artifacts / "found" / f"{number}.onnx"
        beside.parent.mkdir(parents=True, exist_ok=True)
        return Culprits(
            nodes=[self._subject.describe(i) for i in nodes], path=str(path), minimal=minimal,
            measured=judgement.measured, verdict=judgement.verdict, note=judgement.note,
            glue=[self._subject.describe(i) for i in artifact.glue],
            contiguous=Contiguous(len(contiguous), whole.verdict),
            inputs=str(write_inputs(artifact, beside)),
            golden=str(write_golden(self._subject.golden(artifact), beside)),
        )  # fmt: skip


def _counted(counts: dict[Verdict, int]) -> str:
    return f"it failed {counts[Verdict.BAD]} of {sum(counts.values())} times"


def is_bad(found: Culprits) -> bool:
    """Whether a found set failed again."""
    return found.verdict == Verdict.BAD
