"""What a candidate did to an earlier attempt: one that brought the worker down is not tried again."""

from typing import TYPE_CHECKING

from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judge, Judgement, OneAtATime
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class AfterCrash(OneAtATime):
    """A judge that skips the candidate `key`, for the reason `why`."""

    def __init__(self, judge: Judge, key: str, why: str) -> None:
        self._judge, self._key, self._why = judge, key, why

    def judge(self, artifact: Artifact | None) -> Judgement:
        if artifact is not None and artifact.about.key == self._key:
            return Judgement(Verdict.SKIP, "comparison", note=f"it brought the worker down: {self._why}")
        return self._judge.judge(artifact)


def last_crash(context: "JobContext") -> str:
    """How native code ended the attempt before this one, "" if it did not (a worker that was killed is innocent)."""
    card = context.earlier.card
    kind, summary = (card["kind"], card["summary"]) if card else ("", "")
    return summary if kind == "oom" or (kind == "signal" and "SIGKILL" not in summary) else ""
