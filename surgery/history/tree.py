"""The edits made to a model: a tree that only grows, one line of JSON per change, so that a kill loses nothing.

The file's lines are: first {"log": 1, "model", "key"}; then {"id", "parent", "edit", "t"} for an edit
(whose result becomes the current model), and {"at", "t"} for an undo, redo or jump to another one. Id 0 is
the model as on disk; t is seconds since 1970.
"""

import hashlib
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import onnx

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.filesystem.files import MOST, atomic_write, read_file
from layerwise._tool.backends.formats.json_text import check_values
from layerwise._tool.backends.jobs.workspace.root import default_root
from layerwise._tool.surgery.edits import Edit, EditError, edit_from, edits_from_json
from layerwise._tool.surgery.history.journal import HistoryLine, Journal
from layerwise._tool.surgery.history.records import Records
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.streamed import is_external

ROOT = 0
_MOST_INDEXED = 4  # states


@dataclass(frozen=True, slots=True)
class Entry:
    """One edit in the tree. t: seconds since 1970."""

    id: int
    parent: int
    edit: Edit
    t: float


class Misfit(NamedTuple):
    """An edit that does not fit another model, and why."""

    edit: Edit
    reason: str


class History:
    """The edits of one model, and the resulting models. Several instances on one file see each other's changes.

    entries: by id. at: the id of the current model, ROOT before any edit.
    """

    def __init__(self, path: Path, structure: Structure) -> None:
        self.path = path
        self.entries: dict[int, Entry] = {}
        self.at = ROOT
        self._states = {ROOT: structure}
        self._recent: dict[int, Structure] = {}
        self._preferred: dict[int, int] = {}
        self._records = Records(path, structure)
        self._journal = Journal(path, self._take)
        self._journal.read()

    @classmethod
    def open(cls, structure: Structure, root: Path | None = None) -> "History":
        """Open the history of a model in the workspace `root` (the user's by default). Nothing is written yet."""
        found = cls((root or default_root()) / "edits" / f"{model_key(structure)}.jsonl", structure)
        found._records.look()
        return found

    # What is there

    @property
    def structure(self) -> Structure:
        """The current model. EditError if an edit on the way to it does not apply."""
        return self.structure_at(self.at)

    def structure_at(self, number: int) -> Structure:
        """Return the model after an entry. UsageError if there is none."""
        path = self.path_to(number)
        known = next((i for i in range(len(path), 0, -1) if path[i - 1].id in self._states), 0)
        structure = self._states[path[known - 1].id if known else ROOT]
        for entry in path[known:]:
            recorded = self._records.find(entry.id, structure) if entry.edit.heavy else None
            structure = recorded or entry.edit.apply(structure)
            self._keep(entry.id, structure)
        return structure

    def path_to(self, number: int) -> list[Entry]:
        """Return the entries from the first edit to this one."""
        path = []
        while number != ROOT:
            if number not in self.entries:
                raise UsageError(f"the history has no entry {number}")
            path.append(self.entries[number])
            number = path[-1].parent
        return path[::-1]

    def children(self, number: int) -> list[Entry]:
        """Return the edits made to a model, in order."""
        return [entry for entry in self.entries.values() if entry.parent == number]

    @property
    def edits(self) -> list[Edit]:
        """The edits that lead to the current model."""
        return [entry.edit for entry in self.path_to(self.at)]

    @property
    def next(self) -> Entry | None:
        """Return what redo would apply: the edit last undone."""
        number = self._preferred.get(self.at)
        return None if number is None else self.entries[number]

    # Changes

    def do(self, edit: Edit, result: Structure | None = None) -> Structure:
        """Apply an edit and append it. `result`: its result, if already known. EditError as in `Edit.apply`."""
        if edit.heavy:
            self._records.look()
        structure = result if result is not None else edit.apply(self.structure)
        parent = self.at
        with self._journal.writing(self._head()) as append:
            number = max(self.entries, default=ROOT) + 1
            if edit.heavy:
                self._records.keep(number, structure)
            append(HistoryLine(id=number, parent=parent, edit=msgspec.to_builtins(edit), t=time.time()))
        self._keep(number, structure)
        return structure

    def undo(self) -> Structure:
        """Undo one edit. UsageError if there is none."""
        if self.at == ROOT:
            raise UsageError("there is nothing to undo")
        return self.jump(self.entries[self.at].parent)

    def redo(self) -> Structure:
        """Redo the edit that was last undone. UsageError if there is none."""
        if self.next is None:
            raise UsageError("there is nothing to redo")
        return self.jump(self.next.id)

    def jump(self, number: int) -> Structure:
        """Make the model after an entry the current one."""
        structure = self.structure_at(number)
        if self.at in self._states:
            structure.learn_from(self._states[self.at])
        if number != ROOT:
            self._keep(number, structure)
        if number != self.at:
            with self._journal.writing(self._head()) as append:
                append(HistoryLine(at=number, t=time.time()))
        return structure

    def save(self, path: Path) -> None:
        """Write the edits that lead to the current model as a JSON list, for `read_edits` and people."""
        atomic_write(path, edits_to_json(self.edits))

    def export_script(self, path: Path, at: int | None = None) -> None:
        """Write an onnx-graphsurgeon script that makes the model after an entry (None: the current one); as
        `surgery.script.export.export_script`.
        """
        from layerwise._tool.surgery.script.export import export_script

        steps = [(entry.edit, self.structure_at(entry.id)) for entry in self.path_to(self.at if at is None else at)]
        export_script(self._states[ROOT], steps, path, is_new=False)

    # The file

    def _head(self) -> HistoryLine:
        return HistoryLine(log=1, model=str(self._states[ROOT].base or ""), key=self.path.stem)

    def _take(self, line: HistoryLine) -> None:
        with suppress(UsageError, TypeError, ValueError):  # a line that is not ours
            if line.edit is not None and line.id is not None and line.parent is not None:
                entry = Entry(line.id, line.parent, edit_from(line.edit), line.t)
                if entry.id > ROOT and entry.id not in self.entries and self._is_known(entry.parent):
                    self.entries[entry.id] = entry
                    self._arrive(entry.id)
            elif line.at is not None and self._is_known(line.at):
                self._arrive(line.at)

    def _is_known(self, number: int) -> bool:
        return number == ROOT or number in self.entries

    def _arrive(self, number: int) -> None:
        self.at = number
        while number != ROOT:
            parent = self.entries[number].parent
            self._preferred[parent] = number
            number = parent

    def _keep(self, number: int, structure: Structure) -> None:
        """Cache a state. What was derived from it is dropped once later ones exist: megabytes for a large graph."""
        self._states[number] = structure
        self._recent.pop(number, None)
        self._recent[number] = structure
        if len(self._recent) > _MOST_INDEXED:
            self._recent.pop(next(iter(self._recent))).forget()


def model_key(structure: Structure) -> str:
    """Return a hash (hex) of a model's structure and of the locations of its weights; no weight is read.

    It does not depend on the name of the file.
    """
    model = structure.proto()
    base = None
    if structure.base is not None and structure.folder is not None:
        base = structure.base.relative_to(structure.folder).as_posix()
    for tensor in model.graph.initializer:
        if is_external(tensor):
            _hide(tensor, base)
    return hashlib.blake2b(model.SerializeToString(deterministic=True), digest_size=20).hexdigest()


def _hide(tensor: onnx.TensorProto, base: str | None) -> None:
    for entry in tensor.external_data:
        if entry.key == "location" and entry.value == base:
            entry.value = ""


def replay(edits: Iterable[Edit], structure: Structure) -> tuple[Structure, list[Misfit]]:
    """Apply edits to another model; those that do not fit are skipped and returned."""
    misfits = []
    for edit in edits:
        try:
            structure = edit.apply(structure)
        except EditError as error:
            misfits.append(Misfit(edit, error.reason))
    return structure, misfits


def read_edits(path: Path) -> list[Edit]:
    """Return the edits of a file: a JSON list, or a history file (those that lead to its current model).

    BadFile if there are none.
    """
    data = read_file(path, MOST)
    check_values(path, data)
    if data.lstrip().startswith(b'{"log":'):
        return History(path, _NOTHING).edits
    try:
        return edits_from_json(data)
    except UsageError as error:
        raise BadFile(path, str(error)) from None


def edits_to_json(edits: Sequence[Edit]) -> bytes:
    """Return edits as a JSON list, one per line."""
    return b"[\n" + b",\n".join(msgspec.json.encode(edit) for edit in edits) + b"\n]\n"


_NOTHING = Structure.from_proto(onnx.ModelProto(graph=onnx.GraphProto()))
