"""The lint report, in Polygraphy's JSON: which nodes pass, which fail, and every finding."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from layerwise._tool.backends.older_python import StrEnum


class Level(StrEnum):
    """Severity of a finding; an exception fails the model."""

    EXCEPTION = "exception"
    WARNING = "warning"
    INFO = "info"


class LintSource(StrEnum):
    """Origin of a finding, by Polygraphy's names (onnx_graphsurgeon: the structure of the graph)."""

    ONNXRUNTIME = "onnxruntime"
    CHECKER = "onnx_checker"
    LOADER = "onnx_loader"
    STRUCTURE = "onnx_graphsurgeon"


class Entry(Struct, frozen=True):
    """One finding, a row of the table lint. nodes: names of the affected nodes, none if it is about the model; op: of
    the first.
    """

    level: Level
    source: LintSource
    message: str
    nodes: tuple[str, ...] = ()
    op: str = ""

    def to_json(self) -> dict[str, Any]:
        """Polygraphy's fields."""
        fields: dict[str, Any] = {"level": str(self.level), "source": str(self.source), "message": self.message}
        return {**fields, "nodes": list(self.nodes)} if self.nodes else fields


class LintResult(Struct):
    """The result of a lint. passing, failing, unjudged, entries: numbers of nodes and findings; report: path.
    conclusion: what was found, in a sentence.
    """

    passed: bool = False
    passing: int = 0
    failing: int = 0
    unjudged: int = 0
    entries: int = 0
    report: str = ""
    seconds: float = 0.0
    conclusion: str = ""


class LintFindings:
    """Findings and verdicts in order; `listen` gets each finding immediately."""

    def __init__(self, listen: Callable[[Entry], None] = lambda entry: None) -> None:
        self._listen = listen
        self.entries: list[Entry] = []
        self._passing: dict[str, None] = {}
        self._failing: dict[str, None] = {}
        self._mentioned: set[str] = set()

    def add(self, level: Level, source: LintSource, message: str, nodes: Sequence[str] = (), op: str = "") -> None:
        """Record a finding; nodes with an exception fail."""
        entry = Entry(level, source, message, tuple(nodes), op)
        self.entries.append(entry)
        self._mentioned.update(nodes)
        if level == Level.EXCEPTION:
            self._failing.update(dict.fromkeys(nodes))
        self._listen(entry)

    def passes(self, name: str) -> None:
        """Record a node that loaded and ran."""
        self._passing[name] = None

    @property
    def passing(self) -> list[str]:
        """Names of nodes that ran and have no exception."""
        return [name for name in self._passing if name not in self._failing]

    @property
    def failing(self) -> list[str]:
        """Names of nodes with an exception."""
        return list(self._failing)

    @property
    def passed(self) -> bool:
        """True if there is no exception."""
        return not any(entry.level == Level.EXCEPTION for entry in self.entries)

    def mentions(self, name: str) -> bool:
        """Return whether a finding is about this node."""
        return name in self._mentioned

    def to_json(self) -> dict[str, Any]:
        """The report as `polygraphy check lint --output` writes it."""
        summary = {"passing": self.passing, "failing": self.failing}
        return {"summary": summary, "lint_entries": [entry.to_json() for entry in self.entries]}
