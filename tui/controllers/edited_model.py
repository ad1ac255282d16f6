"""The edited model behind the Surgery screen: structure, history and overlays. Runs in a thread of its own.

Everything here is pure Python over protos; edits that need an engine are computed by the warm worker (`heavy`).
"""

import gc
from collections.abc import Sequence
from pathlib import Path

import onnx

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.model.structure import TensorRecord
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.diff.by_alignment import align_rest
from layerwise._tool.debugtools.diff.matching import Matching
from layerwise._tool.debugtools.diff.nodes import graph_side, same_inputs
from layerwise._tool.surgery.edits import Edit
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.delta import affected, delta
from layerwise._tool.surgery.graph.numbering import Numbering
from layerwise._tool.surgery.graph.overlay import Overlay
from layerwise._tool.surgery.history.tree import ROOT, History, Misfit, read_edits, replay
from layerwise._tool.surgery.inspect.view import open_view
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.model.versions import shared
from layerwise._tool.surgery.types.incremental import learn
from layerwise._tool.tui.controllers.edit_complete import Completions
from layerwise._tool.tui.controllers.edit_target import find_node, target
from layerwise._tool.tui.controllers.edit_words import FAMILIES, VERBS, fields, words
from layerwise._tool.tui.state.surgery import NodesBeside, Preview, Sides, Step

_OVERLAYS = 8


class EditedModel:
    """One model being edited. Raises LayerwiseError where the model or the history cannot be read."""

    def __init__(self, model: Path, index: GraphIndex, root: Path) -> None:
        self._path = model
        with ModelFile(model) as file:
            base = Structure.open(file)
        if len(base.nodes) != len(index.main_nodes()):
            raise UsageError(f"{model.name} has changed since it was opened: open it again")
        self._numbering = Numbering(index, base)
        self.history = History.open(base, root)
        self._overlays: dict[int, Overlay] = {}

    # ── what is typed ──

    def propose(self, verb: str, text: str, nodes: Sequence[int]) -> tuple[list[Edit], Preview | None]:
        """The edits that a line means, and what they make; None where an engine is needed. UsageError, EditError."""
        edits = self.words(verb, text, nodes)
        return edits, None if any(edit.heavy for edit in edits) else self.attempt(edits)

    def words(self, verb: str, text: str, nodes: Sequence[int]) -> list[Edit]:
        """The edits that a line means for `nodes`, or for those that it names. UsageError."""
        graph = self.overlay()
        if verb == "delete" and text:
            nodes = [find_node(graph, name) for name in words(text)]
            text = ""
        return list(VERBS[verb](target(graph, nodes), text))

    def complete(self, verb: str, text: str, nodes: Sequence[int]) -> list[str]:
        """What may follow on a line. nodes: those under the cursor, which a change on view may have brought."""
        graph = self.overlay()
        return Completions(graph, [node for node in nodes if graph.proto(node) is not None]).of(verb, text)

    def families(self) -> list[tuple[str, str, list[str]]]:
        """Every kind of edit: its name, what it does, its fields."""
        told = {kind: " ".join((family.__doc__ or "").split("\n\n")[0].split()) for kind, family in FAMILIES.items()}
        return [(kind, told[kind], fields(kind)) for kind in sorted(FAMILIES)]

    # ── states ──

    def overlay(self, number: int | None = None) -> Overlay:
        """The graph after an entry of the history, the current one by default. EditError if an edit does not apply."""
        at = self.history.at if number is None else number
        found = self._overlays.pop(at, None) or Overlay(self._numbering, self.history.structure_at(at))
        found.n_nodes = self._numbering.n_nodes  # later states may have brought more numbers
        self._overlays[at] = found
        while len(self._overlays) > _OVERLAYS:
            del self._overlays[next(iter(self._overlays))]
        return found

    def warm(self) -> None:
        """Look up what the first edit will want to know."""
        self.overlay().state.lookups  # noqa: B018 (it is kept)
        gc.collect()  # of the model that was open before
        gc.freeze()  # what is read stays: looking through it for garbage would stop the app for a tenth of a second

    def learn_types(self, file: Path) -> None:
        """Take over what the worker inferred of the model as it is on disk."""
        base = self._numbering.structure
        learn(base, onnx.GraphProto.FromString(file.read_bytes()).value_info)
        self.overlay().state.learn_from(base)
        gc.freeze()

    def steps(self) -> list[Step]:
        """The whole tree, the file first."""
        entries = sorted(self.history.entries.values(), key=lambda entry: entry.id)
        return [Step(ROOT, -1, "", 0.0), *(Step(e.id, e.parent, e.edit.describe(), e.t) for e in entries)]

    def between(self, one: int, other: int) -> Preview:
        """What lies between two states."""
        before, after = self.overlay(one), self.overlay(other)
        preview = Preview.of(self.edits(other), before, after, delta(before, after))
        self.follow(preview)
        return preview

    def states(self, one: int, other: int) -> Sides:
        """Two states side by side."""
        return states_side_by_side((self._title(one), self._title(other)), self.between(one, other))

    def beside(self, index: GraphIndex, path: Path) -> Sides:
        """The current state beside another model."""
        names = (self._title(self.history.at), shown(path.name))
        return model_side_by_side(names, self.overlay(), self._path, index, path)

    def _title(self, number: int) -> str:
        name = shown(self._path.name)
        return f"{name} after edit {number}" if number else f"{name} as it is on disk"

    # ── changes ──

    def attempt(self, edits: Sequence[Edit], result: Structure | None = None) -> Preview:
        """What edits make of the current state; result: what the last of them makes, if it is known. EditError."""
        before = self.overlay()
        after = result
        if after is None:
            after = before.state
            for edit in edits:
                after = edit.apply(after)
        new = Overlay(self._numbering, after, before.types)
        return Preview.of(edits, before, new, delta(before, new))

    def follow(self, preview: Preview) -> None:
        """Find the outputs that a change affects."""
        preview.affected = affected(preview.before, preview.after, preview.delta)

    def attempt_result(self, edits: Sequence[Edit], file: Path) -> Preview:
        """As `attempt`, of edits whose result the worker has written to `file`."""
        before = self.overlay().state
        model = parse_model(file.read_bytes(), file)
        return self.attempt(edits, shared(Structure.from_proto(model, before.folder, before.base), before))

    def apply(self, preview: Preview) -> tuple[int, int]:
        """Make a change that was looked at; returns the first and the last entry that it became."""
        first = 0
        for number, edit in enumerate(preview.edits):
            last = number == len(preview.edits) - 1
            self.history.do(edit, preview.after.state if last else None)
            first = first or self.history.at
        self._overlays[self.history.at] = preview.after
        return first, self.history.at

    def go(self, number: int) -> Overlay:
        """Make the state after an entry the current one, and return it."""
        self.history.jump(number)
        return self.overlay()

    def edits(self, number: int | None = None) -> list[Edit]:
        """The edits from the file to a state."""
        return [entry.edit for entry in self.history.path_to(self.history.at if number is None else number)]

    # ── files ──

    def write_log(self, path: Path) -> int:
        """Save the edits from the file to the current state as JSON; returns how many. UsageError: a file is there."""
        if path.exists():
            raise UsageError(f"{shown(str(path))} is there already: choose another name")
        self.history.save(path)
        return len(self.history.edits)

    def read_log(self, path: Path) -> list[Edit]:
        """The edits of a log. BadFile."""
        return read_edits(path)

    def fitting(self, edits: Sequence[Edit]) -> tuple[list[Edit], list[Misfit]]:
        """Those of some edits that fit the current state one after the other, and those that do not."""
        _, misfits = replay(edits, self.history.structure)
        lost = {id(misfit.edit) for misfit in misfits}
        return [edit for edit in edits if id(edit) not in lost], misfits


def states_side_by_side(names: tuple[str, str], preview: Preview) -> Sides:
    """The states before and after a change."""
    pairs = []
    for node in preview.shown.order.tolist():
        sign = preview.signs.get(node, " ")
        pairs.append(NodesBeside(-1 if sign == "+" else node, -1 if sign == "-" else node, sign))
    return Sides(names, preview.before, preview.after, pairs)


def model_side_by_side(names: tuple[str, str], state: Overlay, path: Path, index: GraphIndex, other: Path) -> Sides:
    """A state of the open model (at `path`) beside another model; nodes are matched by structure, alignment and name.

    Main graphs only. BadFile if one of the files cannot be read any more.
    """
    with ModelFile(path) as own, ModelFile(other) as file:
        a = graph_side(open_view(own, state.state.proto().SerializeToString())[0])
        b = graph_side(open_view(file, file.structure_bytes())[0])
    inputs = {name: name for name in a.inputs if name in b.inputs}
    shared = inputs | {name: name for name, tensor in a.weights.items() if _alike(tensor, b.weights.get(name))}
    matching = Matching(a, b, shared)
    matching.run(align_rest)
    left = [state.number(node) for node in state.state.nodes]
    right = {index.node_position(int(node)): int(node) for node in index.main_nodes()}
    return Sides(names, state, index, _pairs(matching, left, right))


def _alike(one: TensorRecord, other: TensorRecord | None) -> bool:
    return other is not None and (one.dtype, list(one.dims)) == (other.dtype, list(other.dims))


def _pairs(matching: Matching, left: list[int], right: dict[int, int]) -> list[NodesBeside]:
    """Nodes in the order of the right side, those of the left alone before what follows them."""
    found: list[NodesBeside] = []
    alone = [i for i in matching.a.order if i not in matching.forth]
    place = {i: at for at, i in enumerate(matching.a.order)}
    for j in matching.b.order:
        i = matching.back.get(j)
        if i is None:
            found.append(NodesBeside(-1, right[j], "+"))
            continue
        while alone and place[alone[0]] < place[i]:
            found.append(NodesBeside(left[alone.pop(0)], -1, "-"))
        found.append(NodesBeside(left[i], right[j], " " if _same(matching, i, j) else "~"))
    return found + [NodesBeside(left[i], -1, "-") for i in alone]


def _same(matching: Matching, i: int, j: int) -> bool:
    return matching.a.signatures[i] == matching.b.signatures[j] and same_inputs(matching, i, j)
