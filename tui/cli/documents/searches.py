"""Documents of the searches: reduce, bisect, precision, repeat, build."""

from typing import Any

from msgspec import UNSET, UnsetType

from layerwise._tool.debugtools.search import rows as search
from layerwise._tool.debugtools.search.lens.rows import EffectRow, KeptRow, SetRow
from layerwise._tool.tui.cli.documents.base import OfJob


class Searched(OfJob, kw_only=True):
    """Fields of the result are missing where the job failed."""

    verdicts: list[search.VerdictRow]
    search: str = ""
    original: str | None = None
    verified: bool = False
    checks: int = 0
    summary: str = ""
    conclusion: str = ""
    seconds: float = 0.0


class Reduced(Searched, kw_only=True):
    """Of reduce and bisect. min_good: the file of the nearest model that passes."""

    found: list[search.Culprits] = []
    by: str = ""
    min_good: str | UnsetType | None = UNSET


class Precise(Searched, kw_only=True):
    """Of `precision` with `--check` and without `-o`, kept is a number of layers; with `--to`, the nodes that stay.

    effects, sets: with `--to`, which has no verdicts. Points of the frontier have cost then, else max_abs.
    """

    verdicts: list[search.VerdictRow] = []
    found: list[search.KeptNodes] = []
    low: str = ""
    frontier: list[dict[str, Any]] = []
    kept: int | list[KeptRow] | UnsetType | None = UNSET
    effects: list[EffectRow] | UnsetType = UNSET
    sets: list[SetRow] | UnsetType = UNSET
    adds: bool | UnsetType | None = UNSET
    proved: float | UnsetType | None = UNSET


class Repeated(Searched, kw_only=True):
    """interval: of the rate of failures; below: the probability that it is below the rate asked about."""

    found: list[search.Culprits] = []
    good: int = 0
    bad: int = 0
    skipped: int = 0
    interval: list[float] = []
    below: float | None = None
