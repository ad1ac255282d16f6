"""Rows and the result of a search, schema version 1. A field that older files lack has a default."""

from msgspec import Struct


class CombinationRow(Struct, kw_only=True):
    """A row of the table combinations. n: its number, 0 is the model as it is; replacements: labels, in order.

    milliseconds: median latency, without copies of inputs and outputs; memory: bytes of the engine on the device; both
    None if it could not be timed, and `note` says why. build_seconds: until the engine was ready. best: faster than all
    before it. content: hash of the model that was timed, without external weights, "" if there is none.
    """

    n: int = 0
    replacements: list[str] = []
    milliseconds: float | None = None
    memory: int | None = None
    build_seconds: float = 0.0
    best: bool = False
    note: str = ""
    content: str = ""


class AutotuneResult(Struct, kw_only=True):
    """What a search comes to. passed: a combination is faster than the model, or nothing was to be timed. path, config,
    report: files written; best: labels of the replacements in `path`; milliseconds: of that, model_milliseconds: of the
    model as it is.
    """

    passed: bool = False
    path: str | None = None
    config: str | None = None
    report: str | None = None
    best: list[str] = []
    milliseconds: float | None = None
    model_milliseconds: float | None = None
    tried: int = 0
