"""The verdicts of a search, on file as they fall: what resuming, undoing and the cache go by; and replay files.

Replay files hold the verdicts so far, as Polygraphy writes and reads them.

    {"_N0_outputs": {"state": {"num_nodes": 4}, "iteration_info": {"iteration": 0}, "success": false,
                     "polygraphy_class": "IterationContext"}, ...}

The suffix is the phase's name, absent where a search has no phases. `state` also holds the candidate's own key, under
"layerwise", by which verdicts of searches whose order is not Polygraphy's are found again, and what the verdict was on
under "subject". A skipped candidate counts as a success there.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import ValidationError

from layerwise._tool.backends.errors import BadFile, writing
from layerwise._tool.backends.filesystem.files import write_named
from layerwise._tool.backends.formats import json_format
from layerwise._tool.backends.jobs.identity import content
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.judges.protocol import By, Judgement
from layerwise._tool.debugtools.search.rows import CandidateRow, UndoRow, VerdictRow, read_verdict
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


_CLASS = "IterationContext"
_AT_MOST_EVERY = 0.2  # seconds, where verdicts come faster than files are written


def replay_key(phase: str, iteration: int) -> str:
    """The name of an iteration, in replay files and in names of sorted artifacts."""
    return f"_N{iteration}" + (f"_{phase}" if phase else "")


class Replay:
    """Reads one file and writes another. path: None writes none.

    subject: what is judged, as a hash; loaded verdicts on another one are dropped, which `warn` is told.
    """

    def __init__(self, load: str | None, path: str | None, subject: str, warn: Callable[[str], None]) -> None:
        self._subject = subject
        self._loaded = _load(Path(load)) if load else {}
        said = {key: entry["state"].get("subject", subject) for key, entry in self._loaded.items()}
        other = [key for key, about in said.items() if subject and about != subject]
        if other:
            name = shown(str(load), 200)
            told = "verdicts on another model, or with other inputs, options or versions, are not used"
            warn(f"{name}: {len(other)} {told}")
        for key in other:
            del self._loaded[key]
        self._own = {entry["state"].get("layerwise", key): entry for key, entry in self._loaded.items()}
        self._path = Path(path) if path else None
        self._entries: dict[str, dict[str, Any]] = {}
        self._written = 0.0
        self._stale = False

    def find(self, candidate: Candidate, iteration: int) -> Verdict | None:
        """The verdict that the loaded file has on a candidate."""
        entry = self._known(candidate, iteration)
        if entry is None:
            return None
        skipped = entry["state"].get("verdict") == Verdict.SKIP.value
        return Verdict.SKIP if skipped else Verdict.GOOD if entry["success"] else Verdict.BAD

    def add(self, candidate: Candidate, iteration: int, nodes: int | None, verdict: Verdict) -> None:
        """Take a verdict in. A file that would say no more than the loaded one is not written."""
        self._entries[replay_key(candidate.phase, iteration)] = self._entry(candidate, iteration, nodes, verdict)
        self._stale |= self._known(candidate, iteration) is None

    def _known(self, candidate: Candidate, iteration: int) -> dict[str, Any] | None:
        return self._own.get(candidate.key) or self._own.get(replay_key(candidate.phase, iteration))

    def clear(self) -> None:
        """Forget what was taken in: the search begins anew."""
        self._entries.clear()

    def begin(self, candidate: Candidate, iteration: int, nodes: int | None) -> None:
        """Before a candidate is judged: the file by which it can be skipped should it bring the machine down."""
        if self._path is not None:
            key = replay_key(candidate.phase, iteration)
            skipping = {**self._entries, key: self._entry(candidate, iteration, nodes, Verdict.BAD)}
            path = self._path.with_name(f"{self._path.stem}_skip_current{self._path.suffix}")
            _write(path, skipping)

    def save(self, *, now: bool = True) -> None:
        """Write the file; unless it must be `now`, not more often than five times a second."""
        if self._path is None or not self._stale or (not now and time.monotonic() - self._written < _AT_MOST_EVERY):
            return
        _write(self._path, self._entries)
        self._written, self._stale = time.monotonic(), False

    @property
    def path(self) -> Path | None:
        """Where the file is, once it is."""
        return self._path if self._path is not None and self._path.exists() else None

    def _entry(self, candidate: Candidate, iteration: int, nodes: int | None, verdict: Verdict) -> dict[str, Any]:
        state: dict[str, Any] = {"num_nodes": nodes} if nodes is not None else {}
        state["layerwise"] = candidate.key
        if self._subject:
            state["subject"] = self._subject
        if verdict is Verdict.SKIP:
            state["verdict"] = verdict.value
        return {
            "state": state, "iteration_info": {"iteration": iteration}, "success": verdict is not Verdict.BAD,
            "polygraphy_class": _CLASS,
        }  # fmt: skip


def replay_of(spec: DebugSpec, context: "JobContext", what: str = "") -> Replay:
    """The replay of a search. what: what its candidates are besides parts of the model."""
    return Replay(spec.load_replay, spec.save_replay, _subject(spec, what), context.warn)


def _subject(spec: DebugSpec, what: str) -> str:
    """A hash of what a search with replay files judges, and how; "" where there is nothing to tell.

    By content, wherever the files are: models, inputs, saved outputs, what scripts read; runners, tolerances, versions.
    """
    compare = spec.compare
    if compare is None or not (spec.load_replay or spec.save_replay):
        return ""
    models = [compare.model, *(runner.model for runner in compare.runners)]
    named = {
        "model": [name for name in models if name], "results": [r.results for r in compare.runners if r.results],
        "external_data_dir": compare.model_options.external_data_dir, "feeds": msgspec.to_builtins(compare.feeds),
    }  # fmt: skip
    feeds = json.dumps(named["feeds"], sort_keys=True) if not (compare.feeds.files or compare.feeds.script) else ""
    how = json.dumps([msgspec.to_builtins(compare.tolerance), *map(_runner, compare.runners)], sort_keys=True)
    return blake2b(f"{content(named)} {feeds} {how} {what}".encode(), digest_size=16).hexdigest()


def _runner(spec: RunnerSpec) -> dict[str, Any]:
    """A runner without its name and the files that it names."""
    fields = msgspec.to_builtins(msgspec.structs.replace(spec, name="", model=None, results=None))
    options = fields.pop("options", {})
    return {**fields, "options": {name: value for name, value in options.items() if not name.startswith("save_")}}


def _write(path: Path, entries: dict[str, dict[str, Any]]) -> None:
    with writing(f"the replay {shown(str(path))}"):
        write_named(path, json.dumps(entries, indent=4))


def _load(path: Path) -> dict[str, dict[str, Any]]:
    """BadFile for what is no replay."""
    found = json_format.load(path, {_CLASS: _Loaded})
    if not isinstance(found, dict) or not all(isinstance(entry, _Loaded) for entry in found.values()):
        raise BadFile(path, "not a debug replay: a dict of iterations is expected")
    return found


class _Loaded(dict[str, Any]):
    """An entry of a file that was read: state and success."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(state=fields["state"], success=fields["success"])
        if not isinstance(self["state"], dict) or not isinstance(self["success"], bool):
            raise TypeError("state must be a dict and success true or false")


def verdict_row(n: int, candidate: CandidateRow, judgement: Judgement, content: str) -> VerdictRow:
    """A row of table `verdicts`."""
    return VerdictRow(
        n=n, key=candidate.key, phase=candidate.phase, i=candidate.i, node=candidate.node, op=candidate.op,
        nodes=candidate.nodes, verdict=judgement.verdict, by=judgement.by, seconds=round(judgement.seconds, 4),
        measured=judgement.measured, note=judgement.note, artifact=judgement.measured.output, content=content,
    )  # fmt: skip


def judgement_of(row: VerdictRow) -> Judgement:
    """What a row of table `verdicts` says."""
    return Judgement(row.verdict, cast(By, row.by), row.seconds, row.measured, row.note)


class VerdictRows:
    """Rows of table `verdicts`, those of earlier attempts first. rows: those that were not undone."""

    def __init__(self, context: "JobContext") -> None:
        self._context = context
        self.rows: list[VerdictRow] = []
        self._last = 0
        for row in context.previous_rows("verdicts"):
            with suppress(ValidationError):  # a damaged row is none
                self._take(read_verdict(row))

    def _take(self, row: VerdictRow | UndoRow) -> None:
        if isinstance(row, UndoRow):
            self.rows = [kept for kept in self.rows if kept.n != row.n]
        else:
            self.rows.append(row)
            self._last = max(self._last, row.n)

    def add(self, about: CandidateRow, judgement: Judgement, content: str) -> None:
        """Write a verdict down. content: hash of what was judged, "" where the answer holds for this once only."""
        self._last += 1
        row = verdict_row(self._last, about, judgement, content)
        self._context.row("verdicts", row)
        self.rows.append(row)

    def find(self, phase: str) -> Judgement | None:
        """The verdict of a phase that has but one, if it has fallen."""
        return next((judgement_of(row) for row in self.rows if row.phase == phase), None)

    def cached(self, content: str) -> Judgement | None:
        """A verdict on the same content."""
        for row in self.rows:
            if content and row.content == content:
                return judgement_of(row)
        return None

    def undo(self) -> bool:
        """Take back the last verdict that a person gave, with those that followed from it; False if there is none."""
        given = (at for at, row in enumerate(self.rows) if row.by == "person" and row.phase != "original")
        last = max(given, default=None)
        if last is None:
            return False
        for row in reversed(self.rows[last:]):
            self._context.row("verdicts", UndoRow(row.n))
        del self.rows[last:]
        return True
