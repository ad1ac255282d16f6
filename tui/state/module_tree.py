"""Rows as a tree of modules: a module's row stands for what is in it until it is opened."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from layerwise._tool.surgery.origin.origin import Path

Numbers = NDArray[np.int32]


class ModuleHead(Struct, frozen=True):
    """A row that stands for a module. path: None for what has no module. shown: the names in it that the rows around
    do not say. count: how many items are in it, with those of modules inside.
    """

    path: Path | None
    shown: Path
    depth: int
    count: int
    opened: bool


class _Module(Struct, eq=False):
    """A module while rows are laid. first: the first item in it. items: those directly in it."""

    path: Path | None
    first: int
    items: Sequence[int] = ()
    inside: "dict[str, _Module] | None" = None
    span: tuple[int, int] = (0, 0)

    @property
    def modules(self) -> "list[_Module]":
        return list((self.inside or {}).values())


class ModuleTree:
    """Items 0, 1, … in their order, each in a module or in none; the rows that show them.

    Modules stand where their first item would. One that holds nothing but another module has no row of its own.
    """

    def __init__(self) -> None:
        self._open: set[Path | None] = set()
        self._touched = False
        self._paths: Sequence[Path] = ()
        self._codes: Numbers = np.zeros(0, np.int32)
        self._roots: list[_Module] = []
        self._items: Numbers = np.zeros(0, np.int32)
        self._rows: list[int | _Module] = []
        self._heads: dict[int, ModuleHead] = {}
        self._depths: list[int] = []
        self._row_of: dict[int, int] = {}

    def lay(self, paths: Sequence[Path], codes: Numbers) -> None:
        """Take other items. codes: of each item the place of its module in `paths`, -1 for none; paths may repeat."""
        self._paths, self._codes = paths, codes
        self._grow()
        self._lay()
        while not self._touched and len(self._rows) == 1 and (head := self._heads.get(0)) and not head.opened:
            self._open.add(head.path)
            self._lay()

    def __len__(self) -> int:
        return len(self._rows)

    def head_at(self, row: int) -> ModuleHead | None:
        """The module that a row stands for, None for an item's own row."""
        return self._heads.get(row)

    def depth_at(self, row: int) -> int:
        """How many modules that have rows of their own a row lies in."""
        return self._depths[row] if 0 <= row < len(self._depths) else 0

    def place_at(self, row: int) -> int:
        """The item of a row, or the first of those that it stands for."""
        found = self._rows[row]
        return found.first if isinstance(found, _Module) else found

    def places_at(self, row: int) -> Numbers:
        """All items that a row stands for, those of a module in no special order."""
        found = self._rows[row]
        return self._items[slice(*found.span)] if isinstance(found, _Module) else np.array([found], np.int32)

    def row_of(self, place: int) -> int:
        """The row of an item, or of the module that it is folded into."""
        row = self._row_of.get(place)
        if row is not None:
            return row
        code = int(self._codes[place])
        path = self._paths[code] if code >= 0 else None
        closed = {head.path: at for at, head in self._heads.items() if not head.opened}
        for outer in (None,) if path is None else (path[:level] for level in range(len(path) + 1)):
            if outer in closed:
                return closed[outer]
        return 0

    def row_of_module(self, path: Path | None) -> int:
        """The row that stands for a module, -1 if none does."""
        return next((at for at, head in self._heads.items() if head.path == path), -1)

    def turn(self, row: int) -> int:
        """Open or fold the module of a row, or fold the one that an item's row is in; returns the row to go to."""
        head = self._heads.get(row) or self._around(row)
        if head is None:
            return row
        self._touched = True
        self._open ^= {head.path}
        self._lay()
        return self.row_of_module(head.path)

    def reveal(self, place: int) -> None:
        """Open what an item is folded into."""
        while (head := self._heads.get(self.row_of(place))) is not None and not head.opened:
            self._touched = True
            self._open.add(head.path)
            self._lay()

    @property
    def opened(self) -> list[list[str] | None]:
        """The modules that were opened by hand, as JSON has them; None in it: what lies in no module."""
        return [_plain(path) for path in sorted(self._open, key=repr)] if self._touched else []

    def open_again(self, opened: object) -> None:
        """Open what `opened` told in an earlier session, before items are laid; nothing of anything else."""
        with suppress(msgspec.ValidationError):
            paths = msgspec.convert(opened, list[tuple[str, ...] | None])
            self._open |= {*paths}
            self._touched = self._touched or bool(paths)

    def key_at(self, row: int) -> list[list[str] | None]:
        """The module that a row stands for with its items below it; nothing for any other row."""
        head = self._heads.get(row)
        return [_plain(head.path)] if head is not None and head.opened else []

    def _around(self, row: int) -> ModuleHead | None:
        above = [at for at in self._heads if at < row and self._depths[at] < self._depths[row]]
        return self._heads[max(above)] if above else None

    # ── laying ──

    def _grow(self) -> None:
        """Make the modules, and put their items side by side, so that those of a module are a slice."""
        order = np.argsort(self._codes, kind="stable")
        codes, starts = np.unique(self._codes[order], return_index=True)
        groups = dict(zip(codes.tolist(), np.split(order, starts[1:]), strict=True)) if codes.size else {}
        top = _Module((), len(self._codes))
        lost = _Module(None, len(self._codes))
        for code in sorted(groups, key=lambda code: int(groups[code][0])):
            items = groups[code]
            module = lost if code < 0 else self._module(top, self._paths[code], int(items[0]))
            module.items = np.sort(np.concatenate([np.asarray(module.items, np.int64), items])).tolist()
            module.first = min(module.first, int(items[0]))
        parts: list[Numbers] = []
        self._spans(top, parts, 0)
        at = top.span[1]
        lost.span = (at, at + len(lost.items))
        parts.append(np.array(lost.items, np.int32))
        self._items = np.concatenate(parts).astype(np.int32)
        self._roots = [module for module in (top, lost) if module.span[1] > module.span[0]]

    @staticmethod
    def _module(top: _Module, path: Path, first: int) -> _Module:
        module = top
        for level, name in enumerate(path):
            module.first = min(module.first, first)
            if module.inside is None:
                module.inside = {}
            module = module.inside.setdefault(name, _Module(path[: level + 1], first))
        return module

    def _spans(self, module: _Module, parts: list[Numbers], at: int) -> int:
        """Give a module and those in it their slices; returns where the next one begins."""
        start = at
        parts.append(np.array(module.items, np.int32))
        at += len(module.items)
        for inner in module.modules:
            at = self._spans(inner, parts, at)
        module.span = (start, at)
        return at

    def _lay(self) -> None:
        self._rows, self._heads, self._depths, self._row_of = [], {}, [], {}
        for root in sorted(self._roots, key=lambda module: module.first):
            if root.path == ():
                self._lay_inside(root, 0)
            else:
                self._lay_module(root, (), 0)

    def _lay_module(self, module: _Module, names: Path, depth: int) -> None:
        names = (*names, *(module.path or ())[-1:])
        if not module.items and len(module.modules) == 1:
            self._lay_module(module.modules[0], names, depth)
            return
        opened = module.path in self._open
        count = module.span[1] - module.span[0]
        self._heads[len(self._rows)] = ModuleHead(module.path, names, depth, count, opened)
        self._add(module, depth)
        if opened:
            self._lay_inside(module, depth + 1)

    def _lay_inside(self, module: _Module, depth: int) -> None:
        parts: list[tuple[int, int | _Module]] = [(item, item) for item in module.items]
        parts += [(inner.first, inner) for inner in module.modules]
        for _, part in sorted(parts, key=lambda part: part[0]):
            if isinstance(part, _Module):
                self._lay_module(part, (), depth)
            else:
                self._row_of[part] = len(self._rows)
                self._add(part, depth)

    def _add(self, row: int | _Module, depth: int) -> None:
        self._rows.append(row)
        self._depths.append(depth)


def _plain(path: Path | None) -> list[str] | None:
    return None if path is None else [*path]
