"""What the Graph screen shows: which nodes, in which rows, equal blocks folded, and where the user has been."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from layerwise._tool.tui.state.folding import Folding, Head
from layerwise._tool.tui.state.module_tree import ModuleHead, ModuleTree
from layerwise._tool.tui.state.session import Session

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex

Numbers = NDArray[np.int32]
_VIEW = "graph.view"  # among the session's forms


class NodeRows:
    """Rows of the list: all nodes, with equal blocks folded if wanted, or only the matches of the filter.

    matches: the nodes that the query finds, in the order of rows; None without a query. narrowed: rows are the matches
    only.
    """

    def __init__(self, index: "GraphIndex | None" = None) -> None:
        self.query = ""
        self.matches: Numbers | None = None
        self.narrowed = False
        self._folding = Folding()
        self._tree = ModuleTree()
        self._by_module = False
        self.index: GraphIndex | None = None
        self._order: Numbers = np.zeros(0, np.int32)
        self._place: Numbers = np.zeros(0, np.int32)
        if index is not None:
            self.take(index)

    def take(self, index: "GraphIndex") -> None:
        """Show another graph, searched and folded as before."""
        self.index = index
        self._order = index.order
        self._place = np.full(index.n_nodes, -1, np.int32)
        self._place[self._order] = np.arange(len(self._order), dtype=np.int32)
        narrowed = self.narrowed
        self.search(self.query)
        self.narrowed = self.narrowed and narrowed
        self._folding.lay(self._order, index.repeats() if self._folding.on else [])
        self._lay_modules()

    def __len__(self) -> int:
        if self.index is None:
            return 0
        if self.narrowed and self.matches is not None:
            return len(self.matches)
        return len(self._shape) if self.folded else len(self._order)

    # ── folding ──

    @property
    def folded(self) -> bool:
        """Whether rows shown now may stand for several nodes."""
        return (self._folding.on or self._tree_on) and not self.narrowed

    @property
    def _shape(self) -> "Folding | ModuleTree":
        """What says which rows there are while all nodes are shown, some folded."""
        return self._tree if self._tree_on else self._folding

    @property
    def _tree_on(self) -> bool:
        return self._by_module and len(self._tree) > 0

    @property
    def by_module(self) -> bool:
        """Whether nodes stand below their modules where all are shown."""
        return self._by_module

    def fold_modules(self, on: bool) -> bool:
        """Show nodes below their modules, or not; returns whether any module is known."""
        self._by_module = on
        return self._lay_modules()

    def _lay_modules(self) -> bool:
        modules = self.index.modules() if self._by_module and self.index is not None else None
        codes = np.full(len(self._order), -1, np.int32)
        if modules is not None:
            of_file = self._order < modules.codes.size
            codes[of_file] = modules.codes[self._order[of_file]]
        known = bool((codes >= 0).any())
        self._tree.lay(modules.paths if modules is not None else (), codes if known else codes[:0])
        return known

    def depth_at(self, row: int) -> int:
        """How many modules with rows of their own a row lies in."""
        return self._tree.depth_at(row) if self._tree_on and not self.narrowed else 0

    @property
    def folding(self) -> bool:
        """Whether equal blocks are folded where all nodes are shown."""
        return self._folding.on

    def fold(self, on: bool) -> int:
        """Fold equal blocks, or show every node; returns how many repeats there are."""
        self._folding.on = on
        repeats = self.index.repeats() if on and self.index is not None else []
        if self.index is not None:
            self._folding.lay(self._order, repeats)
        return len(repeats)

    def kept(self, row: int) -> dict[str, Any]:
        """How nodes are folded, and which heads are opened, for the next session. row: where the cursor is."""
        told: dict[str, Any] = {"fold": self.folding, "modules": self._by_module}
        if self.folding or self._by_module:
            told["opened"] = (self._tree if self._by_module else self._folding).opened
        if self.folded:
            told["head"] = self._shape.key_at(row)
        return told

    def fold_again(self, kept: object) -> None:
        """Fold as `kept` told in an earlier session."""
        told = kept if isinstance(kept, dict) else {}
        (self._tree if told.get("modules") else self._folding).open_again(told.get("opened"))
        self.fold(bool(told.get("fold")))
        self.fold_modules(bool(told.get("modules")))

    def row_again(self, node: int, kept: object) -> int:
        """The row of a node, or of the opened head that `kept` was told on, if it stands for the node."""
        head = kept.get("head") if isinstance(kept, dict) and self.folded else None
        rows = (row for row in range(self.row_of(node) + 1) if self._shape.key_at(row) == head)
        return next((row for row in rows if head and self.node_at(row) == node), self.row_of(node))

    def head_at(self, row: int) -> Head | ModuleHead | None:
        """What a row stands for that is not a node's own."""
        return self._shape.head_at(row) if self.folded else None

    def turn(self, row: int) -> int:
        """Open or fold the blocks or the module at `row`; returns the row to go to."""
        return self._shape.turn(row) if self.folded else row

    def reveal(self, node: int) -> None:
        """Open what the node is folded into."""
        if self.folded and self.knows(node):
            self._shape.reveal(int(self._place[node]))

    # ── the filter ──

    def search(self, query: str) -> None:
        """Narrow the rows to the nodes that match; an empty query shows all."""
        self.query = query.strip()
        self.matches = self.index.search(self.query) if self.index is not None and self.query else None
        self.narrowed = self.matches is not None

    def widen(self) -> None:
        """Show all nodes again; the matches stay for `next_match`."""
        self.narrowed = False

    # ── rows and nodes ──

    def node_at(self, row: int) -> int:
        """The row's node, or the first of those that it stands for."""
        if self.narrowed and self.matches is not None:
            return int(self.matches[row])
        return int(self._order[self._shape.place_at(row) if self.folded else row])

    def nodes_at(self, row: int) -> list[int]:
        """All nodes that a row stands for."""
        if self.head_at(row) is None:
            return [self.node_at(row)]
        nodes: list[int] = self._order[np.sort(self._shape.places_at(row))].tolist()
        return nodes

    def row_of(self, node: int) -> int:
        """The node's row, or that of the next one when the filter hides it."""
        if self.narrowed and self.matches is not None:
            places = self._place[self.matches]
            return min(int(np.searchsorted(places, self._place_of(node))), max(0, len(self.matches) - 1))
        place = min(self._place_of(node), max(0, len(self._order) - 1))
        return self._shape.row_of(place) if self.folded and len(self._order) else place

    def holds(self, node: int) -> bool:
        """Whether the node has a row of its own."""
        row = self.row_of(node)
        return row < len(self) and self.node_at(row) == node and self.head_at(row) is None

    def stands_for(self, row: int, node: int) -> bool:
        """Whether a row is the node's own, or that of a block or a module that it lies in."""
        if not 0 <= row < len(self) or not self.knows(node):
            return False
        if self.head_at(row) is None:
            return self.node_at(row) == node
        return bool((self._shape.places_at(row) == self._place[node]).any())

    def heir(self, node: int, index: "GraphIndex") -> int:
        """The node itself, or, where another graph lacks it, the next one in these rows' order that is there; else the
        last before it.
        """
        there = np.zeros(max(index.n_nodes, len(self._place), node + 1), bool)
        there[index.order] = True
        if there[node] or not self.knows(node):
            return node
        place = int(self._place[node])
        later, earlier = self._order[place:], self._order[:place]
        later, earlier = later[there[later]], earlier[there[earlier]]
        return int(later[0]) if later.size else int(earlier[-1]) if earlier.size else node

    def next_match(self, node: int, step: int) -> int | None:
        """The match after (step 1) or before (step -1) `node`, going round; None without matches."""
        if self.matches is None or not len(self.matches):
            return None
        places = self._place[self.matches]
        at = int(np.searchsorted(places, self._place_of(node), "right" if step > 0 else "left"))
        return int(self.matches[(at if step > 0 else at - 1) % len(self.matches)])

    def knows(self, node: int) -> bool:
        """Whether the graph has the node, shown or not."""
        return 0 <= node < len(self._place) and self._place[node] >= 0

    def _place_of(self, node: int) -> int:
        """The node's place in the order; of one that is not there, that of the next by number."""
        if self.knows(node):
            return int(self._place[node])
        later = self._place[min(node, len(self._place)) :]
        there = later[later >= 0]
        return int(there[0]) if there.size else max(0, len(self._order) - 1)


class JumpHistory(msgspec.Struct):
    """Nodes that the user jumped between, like a browser's pages. at: the place among them."""

    LIMIT: ClassVar[int] = 200

    nodes: list[int] = []
    at: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.at <= len(self.nodes) or min(self.nodes, default=0) < 0:
            raise ValueError("no place among the nodes")

    def jump(self, origin: int, target: int) -> None:
        """Note a jump; what lay ahead is forgotten."""
        del self.nodes[self.at :]
        self.nodes = [*self.nodes, origin][-self.LIMIT :]
        self.at = len(self.nodes)
        self.nodes.append(target)

    def back(self, current: int) -> int | None:
        if self.at == 0:
            return None
        if self.at < len(self.nodes):
            self.nodes[self.at] = current
        else:
            self.nodes.append(current)
        self.at -= 1
        return self.nodes[self.at]

    def forward(self, current: int) -> int | None:
        if self.at + 1 >= len(self.nodes):
            return None
        self.nodes[self.at] = current
        self.at += 1
        return self.nodes[self.at]


class KeptView(msgspec.Struct, omit_defaults=True):
    """How a list of nodes stood, beside its rows, for the next session.

    zoomed: the detail pane is hidden. range_from: the row where a range of rows starts, None without one.
    """

    zoomed: bool = False
    range_from: Annotated[int, msgspec.Meta(ge=0)] | None = None
    jumps: JumpHistory = msgspec.field(default_factory=JumpHistory)

    @classmethod
    def of(cls, session: Session) -> "KeptView":
        """What was kept in a session, nothing if that is damaged."""
        return session.kept(_VIEW, cls)

    def keep(self, session: Session) -> None:
        """Keep it over a restart."""
        session.remember(_VIEW, form=msgspec.to_builtins(self))
