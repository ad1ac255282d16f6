"""Surgery as the screens see it: the edited graph, its history, and the change that waits to be applied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.tui.state.session import Saved, Session
from layerwise._tool.tui.state.signal import Signal

if TYPE_CHECKING:
    from layerwise._tool.surgery.edits import Edit
    from layerwise._tool.surgery.graph.delta import Delta
    from layerwise._tool.surgery.graph.overlay import Overlay
    from layerwise._tool.tui.state.changes import Sides


def surgery_session(session: Session) -> Session:
    """A session for the edited graph of the same model: its own cursor, marks and filter, kept within `session`."""
    kept = session.forms.get("surgery") or {}
    try:
        saved = msgspec.convert(kept.get("saved", {}), Saved)
    except (msgspec.ValidationError, AttributeError):
        saved = Saved()
    return Session(session.model, saved)


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
    last: verb and text of the last edit, for `.`. compared: what the Changes screen shows.
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
    last: tuple[str, str] | None = None
    compared: "Sides | None" = None
    on_change: Signal[[]] = field(default_factory=Signal)

    @property
    def edits(self) -> int:
        """How many edits lie between the file and the head."""
        return len(self.path()) - 1 if self.steps else 0

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
