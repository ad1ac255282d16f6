"""Rows and results of searches as jobs have them on file, schema version 1: written by the search, read by who resumes
or shows it. A field that older files lack has a default; one that is not known is ignored.

`i` is the position of a node in the suspect's graph; node, op: its name and operator; lists are cut to a length that
fits a journal. Errors are those of the layer table: absolute in the tensor's unit, relative as a fraction.
"""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, convert

from layerwise._tool.debugtools.search.strategies.protocol import Verdict

Count = Annotated[int, Meta(ge=0, le=1 << 53)]


class Numbers(Struct, frozen=True, omit_defaults=True):
    """What a verdict rests on: numbers of the tensor that decided (over: elements beyond atol and rtol, iteration: of
    the inputs), or how a command ended (output: the folder with what it printed). build_seconds: of the engine.
    """

    tensor: str | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    rel_l2: float | None = None
    over: Count | None = None
    atol: float | None = None
    rtol: float | None = None
    note: str = ""
    iteration: int | None = None
    exit_code: int | None = None
    output: str | None = None
    build_seconds: float | None = None


class Node(Struct):
    """A node of the suspect, with the tensors that it makes."""

    i: Count | None = None
    node: str = ""
    op: str = ""
    outputs: list[str] = []


class CandidateRow(Struct, frozen=True, omit_defaults=True):
    """What is judged. nodes: how many it has; i: where it is cut, or its only node; glue: labels of nodes that it needs
    besides. trial: name of a build, forced: file of the tactics that it is to have.
    """

    key: str = ""
    phase: str = ""
    nodes: Count | None = None
    i: Count | None = None
    node: str | None = None
    op: str | None = None
    inputs: list[str] = []
    outputs: list[str] = []
    glue: list[str] = []
    trial: str = ""
    forced: str | None = None


class VerdictRow(Struct, kw_only=True):
    """A row of the table verdicts. n: its number; nodes: how many the candidate has (precision: how many stay in FP32);
    by: comparison, command, person, cache or replay; content: hash of what was judged, "" if the verdict holds for that
    once only. undone: on view only, taken back since.
    """

    n: Count
    key: str = ""
    phase: str = ""
    i: Count | None = None
    node: str | None = None
    op: str | None = None
    nodes: Count | None = None
    verdict: Verdict
    by: str = ""
    seconds: float = 0.0
    measured: Numbers = Numbers()
    note: str = ""
    artifact: str | None = None
    content: str = ""
    undone: bool = False


class UndoRow(Struct):
    """A row of the table verdicts that takes back the one of number `n`."""

    n: Count
    undo: bool = True


def read_verdict(row: object) -> VerdictRow | UndoRow:
    """A row of the table verdicts. msgspec.ValidationError if it is none."""
    undoes = isinstance(row, dict) and row.get("undo")
    return convert(row, UndoRow) if undoes else convert(row, VerdictRow)


class VerdictQuestion(Struct):
    """Whether a candidate is good, put to a person. suggestion, measured: of the machine; artifact: role -> file."""

    text: str
    choices: list[str]
    suggestion: str | None
    measured: Numbers
    artifact: dict[str, str]
    candidate: CandidateRow | UnsetType = UNSET
    kind: str = "verdict"


class BandRow(Struct):
    """A row of the table band. runs: (state, how many nodes in a row have it) over the whole graph (repeat: over the
    tries); position: the node asked about.
    """

    runs: list[tuple[str, Count]] = []
    position: Count | None = None
    candidate: CandidateRow | None = None


class BestRow(Struct):
    """A row of the table best: the smallest model that fails so far (precision: with the fewest FP32 nodes that
    passes). nodes: the first positions; count: of all; labels: the first names; path: the file.
    """

    nodes: list[Count] = []
    count: Count = 0
    labels: list[str] = []
    path: str = ""
    measured: Numbers = Numbers()


class NoteRow(Struct, omit_defaults=True):
    """A row of the table search: what a later attempt takes over. iteration: the inputs that fail; trying: key of the
    candidate in work; seconds: expected, of each node; hints: positions of likely culprits; level: relative L2 error by
    which most nodes are off; auto: a person lets the machine finish.
    """

    iteration: int | None = None
    trying: str | None = None
    seconds: list[float] | None = None
    hints: list[int] | None = None
    level: float | None = None
    auto: bool = False


class ScoreRow(Struct):
    """A row of the table precision: relative L2 error that a node in low precision makes by itself (local), and at the
    outputs (effect).
    """

    i: Count
    node: str
    op: str
    outputs: list[str]
    local: float
    effect: float


class Point(Struct):
    """A measured choice of precision on the frontier: nodes in low precision, nodes kept, worst error."""

    low: int = 0
    kept: int = 0
    rel_l2: float | None = None
    max_abs: float | None = None
    verdict: str = ""


class FoundRow(Struct, kw_only=True):
    """A set of nodes that a search has found. path: its model; minimal: no node of it can be left out; measured,
    verdict, note: of a last check by itself.
    """

    nodes: list[Node] = []
    path: str = ""
    minimal: bool = False
    measured: Numbers = Numbers()
    verdict: str = ""
    note: str = ""


class Contiguous(Struct):
    """How many nodes a set has with the holes between them closed, and the verdict on those."""

    nodes: int
    verdict: str


class Culprits(FoundRow):
    """What reduce and bisect have found. glue: nodes that the model has besides; inputs, golden: files. Of bisect:
    skipped (nodes before it without a verdict), monotone, with_all_before (how many nodes it fails with, if not alone);
    of one with wrong verdicts their rates, and the probability of what was found.
    """

    glue: list[Node] = []
    contiguous: Contiguous | None = None
    inputs: str = ""
    golden: str = ""
    skipped: list[Node] | UnsetType = UNSET
    monotone: bool | UnsetType = UNSET
    probability: float | UnsetType = UNSET
    false_good: float | UnsetType = UNSET
    false_bad: float | UnsetType = UNSET
    with_all_before: int | UnsetType = UNSET


class FileVerdict(Struct):
    """How a file fares on the runner."""

    verdict: str = ""
    measured: Numbers = Numbers()
    note: str = ""


class KeptNodes(FoundRow):
    """The nodes that must stay in FP32. file: None unless a comparison judges; build: options of `convert` that build
    an engine likewise, None where there is no engine.
    """

    file: FileVerdict | None = None
    build: list[str] | None = None


class SearchResult(Struct, kw_only=True):
    """What all searches come to. search: its word; original: verdict on the whole model; verified: what was found was
    checked again; checks, cached: candidates judged, and known without; replay: file; seconds: of this attempt.
    summary: what was found; conclusion: with how sure that is and what to do next.
    """

    passed: bool = False
    search: str = ""
    original: str | None = None
    verified: bool = False
    checks: Count = 0
    cached: int = 0
    replay: str | None = None
    summary: str = ""
    conclusion: str = ""
    seconds: float = 0.0


class NodeSearchResult(SearchResult):
    """Of reduce and bisect. by: who judged; min_good: file of the nearest model that passes."""

    by: str = ""
    found: list[Culprits] = []
    min_good: str | UnsetType | None = UNSET


class PrecisionSearchResult(SearchResult):
    """Of precision. low: the type; emulated: candidates were FP32 nodes between casts; all_low: verdict with all nodes
    in the type, lowerable: how many can be.
    """

    by: str = ""
    low: str = ""
    found: list[KeptNodes] = []
    frontier: list[Point] = []
    emulated: bool = False
    all_low: str | UnsetType | None = UNSET
    lowerable: int | UnsetType = UNSET


class LayersResult(SearchResult):
    """Of layers. kept: how many first (direction: forward) or last layers must run in `precision`, None: no number
    will do; layers: of the network.
    """

    kept: int | None = None
    layers: int = 0
    precision: str = ""
    direction: str = ""


class RepeatedResult(SearchResult):
    """Of repeat. interval: of the rate of failures; below: probability that it is below the rate asked about, None if
    none was.
    """

    found: list[Culprits] = []
    good: int = 0
    bad: int = 0
    skipped: int = 0
    interval: list[float] = []
    below: float | None = None


class BuildsResult(RepeatedResult):
    """Of build. suspect_tactics: those that bad builds alone have, with how many of these; varied: layer -> how many
    tactics it has had; bad_tactics: sets that are verified to make a good build fail, None if not asked. files:
    exclude, for --exclude-tactics.
    """

    suspect_tactics: list[dict[str, object]] = []
    varied: dict[str, int] = {}
    bad_tactics: list[list[dict[str, object]]] | None = None
    files: dict[str, str] = {}
