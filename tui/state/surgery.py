"""Surgery as the screens see it: the edited graph, its history, the change that waits, two graphs side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.tui.state.session import Saved, Session
from layerwise._tool.tui.state.signal import Signal

if TYPE_CHECKING:
    from layerwise._tool.surgery.edits import Edit
    from layerwise._tool.surgery.graph import GraphIndex
    from layerwise._tool.surgery.graph.delta import Delta
    from layerwise._tool.surgery.graph.overlay import Overlay

_SURGERY = "surgery"  # among the session's forms


class KeptEdits(msgspec.Struct, frozen=True, omit_defaults=True):
    """What of Surgery survives a restart, within the session of the model.

    groups: last edit -> first one, of those that one key made. written: the state last written. edits: how many lie
    between the file and the head. last: verb and text of the last edit, for `.`.
    """

    saved: Saved = msgspec.field(default_factory=Saved)
    groups: dict[int, int] = {}
    written: int = 0
    edits: int = 0
    last: tuple[str, str] | None = None

    @classmethod
    def of(cls, session: Session) -> "KeptEdits":
        """What was kept in a session, nothing if that is damaged."""
        return session.kept(_SURGERY, cls)

    def keep(self, session: Session) -> None:
        """Keep it over a restart."""
        session.remember(_SURGERY, form=msgspec.to_builtins(self, str_keys=True))


def surgery_session(session: Session) -> Session:
    """A session for the edited graph of the same model: its own cursor, marks and filter, kept within `session`."""
    return Session(session.model, KeptEdits.of(session).saved)


@dataclass(frozen=True)
class Step:
    """One state in the history. id 0 is the file as it is; parent: the state that the edit `text` was made on."""

    id: int
    parent: int
    text: str
    time: float


@dataclass(frozen=True)
class Check:
    """What the worker found in a state. problems: why the checkers refuse it; types: (tensor, was, is).

    failed: why it could not be checked.
    """

    problems: Sequence[str] = ()
    types: Sequence[tuple[str, str, str]] = ()
    failed: str = ""


@dataclass(eq=False)
class Preview:
    """A change before it is made: edits, the states before and after, and what lies between them.

    shown: the graph after, with the nodes that go still in it. signs: `-` for a node that goes, `+` for one that comes,
    `~` for one that changes. affected: outputs that are computed from something else, None until that was followed.
    """

    edits: "Sequence[Edit]"
    before: "Overlay"
    after: "Overlay"
    shown: "Overlay"
    delta: "Delta"
    signs: Mapping[int, str]
    affected: list[str] | None = None

    @classmethod
    def of(cls, edits: "Sequence[Edit]", before: "Overlay", after: "Overlay", found: "Delta") -> "Preview":
        """What `edits` make of `before`; `found` lies between that and `after`."""
        signs = {node: sign for sign, nodes in (("-", found.removed), ("+", found.added), ("~", found.changed))
                 for node in nodes}  # fmt: skip
        return cls(edits, before, after, after.with_removed(before, found.removed), found, signs)

    def nodes(self) -> list[int]:
        """All nodes that are touched, in the order in which they are shown."""
        return [node for node in self.shown.order.tolist() if node in self.signs]


@dataclass
class SurgeryState:
    """session: what the Surgery screen looks at, its own marks and cursor among it.

    opened: the history and the structure are there. head: the state on view; saved: the one last written, and where to.
    preview: the change that waits for enter or escape; check: what the worker says of it, or of the head, once it does.
    proposed: verb and text of the change that waits; last: of the last one that was made, for `.`. older_marks: tensors
    that were marked before the screen was come to, for whose nodes an edit asks first.
    compared: what the Changes screen shows.
    """

    session: Session
    opened: bool = False
    opening: str = ""
    steps: list[Step] = field(default_factory=list)
    head: int = 0
    saved: int = 0
    saved_as: Path | None = None
    overlay: "Overlay | None" = None
    preview: Preview | None = None
    check: Check | None = None
    proposed: tuple[str, str] | None = None
    last: tuple[str, str] | None = None
    older_marks: frozenset[str] = frozenset()
    compared: "Sides | None" = None
    on_change: Signal[[]] = field(default_factory=Signal)

    @property
    def edits(self) -> int:
        """How many edits lie between the file and the head."""
        return len(self.path()) - 1 if self.steps else 0

    @property
    def marks_act(self) -> bool:
        """Whether edits are of the marked nodes: some were marked, or agreed to, since the screen was come to."""
        return not self.session.marks <= self.older_marks

    @property
    def unsaved(self) -> bool:
        """Whether the head is neither the file as it is nor the state last written."""
        return self.head not in (0, self.saved)

    def step(self, id: int) -> Step | None:
        return next((step for step in self.steps if step.id == id), None)

    def path(self) -> list[int]:
        """The states from the file to the head."""
        parents = {step.id: step.parent for step in self.steps}
        found = [self.head]
        while found[-1] in parents and found[-1] != 0:
            found.append(parents[found[-1]])
        return found[::-1]

    def sign(self, node: int) -> str:
        """How a node differs: from the state before the waiting change, else from the file."""
        if self.preview is not None:
            return self.preview.signs.get(node, " ")
        if self.overlay is None or node not in self.overlay.own:
            return " "
        return "+" if node >= self.overlay.numbering.index.n_nodes else "~"


CONTEXT = 2


@dataclass(frozen=True)
class NodesBeside:
    """A node of each side, -1 for none. sign: `-` only left, `+` only right, `~` they differ, else a space."""

    left: int
    right: int
    sign: str


@dataclass(frozen=True)
class Sides:
    """Two graphs and their nodes in one order. names: what the sides are called."""

    names: tuple[str, str]
    left: "GraphIndex"
    right: "GraphIndex"
    pairs: list[NodesBeside]

    def count(self, sign: str) -> int:
        """How many rows have that sign."""
        return sum(pair.sign == sign for pair in self.pairs)


@dataclass(frozen=True)
class Gap:
    """Equal pairs that are left out: `count` from place `start` on."""

    start: int
    count: int


class SideRows:
    """The rows of two sides: what differs, a little around it, and gaps."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        self._opened: set[int] = set()
        self.rows: list[NodesBeside | Gap] = []
        self._lay()

    def open(self, row: int) -> bool:
        """Show what a gap leaves out; false where the row is none."""
        gap = self.rows[row] if row < len(self.rows) else None
        if not isinstance(gap, Gap):
            return False
        self._opened.add(gap.start)
        self._lay()
        return True

    def next(self, row: int, step: int) -> int | None:
        """The next row that begins a difference, after or before `row`; None if there is none."""
        signs = [isinstance(item, NodesBeside) and item.sign != " " for item in self.rows]
        starts = [at for at, differs in enumerate(signs) if differs and not (at and signs[at - 1])]
        ahead = [at for at in starts if (at - row) * step > 0]
        return (min(ahead) if step > 0 else max(ahead)) if ahead else None

    def _lay(self) -> None:
        pairs, near = self.sides.pairs, -1
        shown = [False] * len(pairs)
        for at, pair in enumerate(pairs):
            if pair.sign != " ":
                first = max(at - CONTEXT, near + 1)
                near = min(at + CONTEXT, len(pairs) - 1)
                shown[first : near + 1] = [True] * (near + 1 - first)
        self.rows, at = [], 0
        while at < len(pairs):
            end = at
            while end < len(pairs) and not shown[end]:
                end += 1
            if end - at > 1 and at not in self._opened:
                self.rows.append(Gap(at, end - at))
                at = end
            else:
                end = max(end, at + 1)
                self.rows += pairs[at:end]
                at = end
