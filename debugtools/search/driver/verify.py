"""What a search ends with: found nodes verified, written, told."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.debugtools.search.driver.files import Files, write_model
from layerwise._tool.debugtools.search.driver.history import VerdictRows
from layerwise._tool.debugtools.search.driver.start import Noise, until_settled
from layerwise._tool.debugtools.search.judges.protocol import Judge, Judgement, write_golden, write_inputs
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import CandidateRow, Contiguous, Culprits, Node
from layerwise._tool.debugtools.search.spec import FlakySpec
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


_STEADY = Noise(FlakySpec(0.0, 0.0), 0.05)


class Verifier:
    """Asks once more about what was found, whatever was said before; as often as a fault that comes and goes wants.

    judge: None where a person's word stands. noise: None where verdicts are not wrong.
    """

    def __init__(
        self,
        context: "JobContext",
        subject: Subject,
        judge: Judge | None,
        history: VerdictRows,
        files: Files,
        noise: Noise | None,
    ) -> None:
        self._context, self._subject, self._judge = context, subject, judge
        self._history, self._files, self._noise = history, files, noise or _STEADY

    def judge(self, nodes: Sequence[int], phase: str) -> Judgement:
        """The verdict on `nodes` alone."""
        found, verdict = until_settled(
            lambda number: self._once(nodes, phase if number == 1 else f"{phase}#{number}"), self._noise
        )
        last = found[-1]
        if last.verdict is Verdict.SKIP or len(found) == 1:
            return last
        bad = sum(each.verdict is Verdict.BAD for each in found)
        return replace(last, verdict=verdict or last.verdict, note=f"it failed {bad} of {len(found)} times")

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


def is_bad(found: Culprits) -> bool:
    """Whether a found set failed again."""
    return found.verdict == Verdict.BAD
