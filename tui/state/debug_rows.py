"""Rows and results of debug jobs, as the Debug screen reads them."""

import msgspec

from layerwise._tool.debugtools.checks.invariants.spec import RelationRow
from layerwise._tool.debugtools.search import rows as types
from layerwise._tool.debugtools.search.lens.rows import EffectRow


class ShownSuspect(types.Node):
    """A suspect of a locate job, as the screen reads it. local, accumulated: relative L2 errors."""

    diagnosis: str = ""
    evidence: str = ""
    local: float | None = None
    local_abs: float | None = None
    accumulated: float | None = None
    amplification: float | None = None
    region: list[types.Node] = []
    iteration: types.Count = 0


class ShownStep(msgspec.Struct):
    """A step of a triage, as the screen reads it. by: user or machine; jobs: that it ran."""

    title: str = ""
    question: str = ""
    answer: str = ""
    by: str = ""
    seconds: float | None = None
    evidence: list[str] = []
    advice: str = ""
    jobs: list[types.Count] = []


class Result(msgspec.Struct):
    """What the screen reads of a job's result, whichever of SEARCHES it is."""

    passed: bool = False
    summary: str = ""
    conclusion: str = ""
    advice: str = ""
    found: list[types.FoundRow] = []
    frontier: list[types.Point] = []
    files: dict[str, str] = {}
    suspects: list[ShownSuspect] = []
    n_suspects: types.Count | None = None
    level: float | None = None
    seconds: float | None = None
    checks: types.Count = 0
    kept: list[types.Node] | None = None
    adds: bool | None = None
    needs: str = ""


Shown = types.VerdictRow | ShownSuspect | ShownStep | RelationRow | EffectRow
