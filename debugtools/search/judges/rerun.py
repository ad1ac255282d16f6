"""The whole comparison as a judge, its sessions opened anew each time: what changes from build to build shows."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.search.judges.original import Original, stronger
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judgement, OneAtATime
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class RerunJudge(OneAtATime):
    """Bad if any iteration fails by the user's tolerances. LayerwiseError if no iteration compares anything."""

    def __init__(self, context: "JobContext", setup: Setup) -> None:
        self._setup, self._original = setup, Original(context, setup)

    def judge(self, artifact: Artifact | None) -> Judgement:
        started = time.perf_counter()
        found: Judgement | None = None
        for number, feed in self._original.feeds():
            found = stronger(found, self._original.judge(number, feed))
            if found.verdict is Verdict.BAD:
                break
        self._setup.close()
        if found is None or found.verdict is Verdict.SKIP:
            raise LayerwiseError(found.note if found else "nothing was compared: there are no inputs")
        return replace(found, seconds=time.perf_counter() - started)
