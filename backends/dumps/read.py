"""A dump of another program as results: one runner, its iterations, tensors that are read on access."""

from collections.abc import Sequence
from pathlib import Path

from layerwise._tool.backends.dumps.dump import Dump
from layerwise._tool.backends.dumps.files import Tensors, tensors
from layerwise._tool.backends.dumps.kinds import ARCHIVES
from layerwise._tool.backends.dumps.layouts import laid_out
from layerwise._tool.backends.dumps.members import Member, contents
from layerwise._tool.backends.dumps.naming import (
    Place,
    by_folder,
    by_pattern,
    rank_of,
    shared_folder,
    stem_of,
)
from layerwise._tool.backends.dumps.ranks import Pieces
from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.results.inference import IterationResult, RunResults, Stored, StoredOutputs
from layerwise._tool.backends.specs import DumpRule
from layerwise._tool.backends.text import shown

_NAMED = 3
_RAW = ("|V1", "uint16")  # types that FP8 and bfloat16 are written as


def read_dump(path: Path, rule: DumpRule, *, join: bool = True) -> Dump:
    """A dump by a rule, or by what it looks like. join: pieces of ranks make one tensor; else each is one by itself.

    BadFile, UsageError as `open_results`.
    """
    held = contents(path)
    shared = shared_folder([member.path for member in held.members]) if _archive(path) else ""
    paths = [member.path for member in held.members]
    others = list(held.others)
    if rule.pattern:
        places = by_pattern(paths, rule.pattern, shared)
        read = [(member, place) for member, place in zip(held.members, places, strict=True) if place is not None]
        others += [name for name, place in zip(paths, places, strict=True) if place is None]
        if not read:
            names = ", ".join(shown(name, 80) for name in paths[:_NAMED])
            raise UsageError(
                f"no file of {shown(str(path))} fits the pattern {shown(rule.pattern, 120)}: it has {names}"
            )
        found = [(member, place, tensors(member)) for member, place in read]
        pattern = rule.pattern
    else:
        inside = [tensors(member) for member in held.members]
        suggested = by_folder(paths, [None in each for each in inside], shared)
        found = list(zip(held.members, suggested.places, inside, strict=True))
        pattern = suggested.pattern
    dump = _Making(path, rule, join).dump(found)
    count = len(dump.results[0])
    dump.notes.insert(0, f"{count} iteration{'s' * (count != 1)}, {len(found)} files read as {shown(pattern, 120)}")
    if others:
        names = ", ".join(shown(name, 80) for name in others[:_NAMED])
        dump.notes.append(f"{len(others)} files were not read: {names}{', …' if len(others) > _NAMED else ''}")
    return dump


def _archive(path: Path) -> bool:
    return path.name.lower().endswith(ARCHIVES) and not path.is_dir()


class _Making:
    def __init__(self, path: Path, rule: DumpRule, join: bool) -> None:
        self._path, self._rule, self._join = path, rule, join
        self._pieces: dict[tuple[int, str], dict[int, Stored]] = {}
        self._tensors: dict[int, dict[str, Stored]] = {}

    def dump(self, found: Sequence[tuple[Member, Place, Tensors]]) -> Dump:
        for member, place, inside in found:
            self._tensors.setdefault(place.iteration, {})
            for key, stored in inside.items():
                self._add(member, place, key, stored)
        numbers = sorted(self._tensors)
        dump = Dump(RunResults(), foreign=True)
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            dump.notes.append(
                f"its iterations have the numbers {', '.join(map(str, numbers[:8]))}, taken in that order"
            )
        self._add_pieces(dump)
        dump.raw = {name: each.dtype for name, each in self._tensors[numbers[0]].items() if each.dtype in _RAW}
        unknown = [name for name, kind in dump.raw.items() if kind == "|V1"]
        if unknown:
            told = (
                f"{shown(unknown[0], 80)} and {len(unknown) - 1} others" if len(unknown) > 1 else shown(unknown[0], 80)
            )
            dump.notes.append(f"the type of {told} is not known: GLOB:float8_e4m3fn of --dump-rule names it")
        name = shown(self._path.name or str(self._path), 60)
        iterations = [IterationResult(StoredOutputs(self._tensors[number]), None, name, "every") for number in numbers]
        dump.results.append(name, iterations)
        return dump

    def _add(self, member: Member, place: Place, key: str | None, stored: Stored) -> None:
        rank = place.rank
        if key is not None and rank is None and not self._rule.pattern:
            key, rank = rank_of(key)
        name = place.name if key is None else _joined_name(place.name, key)
        name = name or stem_of(member.path)
        for old, new in self._rule.replace:
            name = name.replace(old, new)
        name = name.encode("utf-8", "backslashreplace").decode()
        stored = laid_out(name, stored, self._rule)
        if rank is None:
            self._put(self._tensors[place.iteration], name, stored)
        elif rank in (known := self._pieces.setdefault((place.iteration, name), {})):
            raise BadFile(self._path, f"rank {rank} of {shown(name, 120)} is there twice in one iteration")
        else:
            known[rank] = stored

    def _put(self, known: dict[str, Stored], name: str, stored: Stored) -> None:
        if name in known:
            raise BadFile(self._path, f"{shown(name, 120)} is there twice in one iteration")
        known[name] = stored

    def _add_pieces(self, dump: Dump) -> None:
        ranks = sorted({rank for pieces in self._pieces.values() for rank in pieces})
        for (iteration, name), pieces in self._pieces.items():
            known = self._tensors[iteration]
            if len(ranks) == 1:
                self._put(known, name, pieces[ranks[0]])
            elif not self._join:
                for rank in sorted(pieces):
                    self._put(known, f"{name}.rank{rank}", pieces[rank])
            else:
                there = sorted(pieces)
                stored = [pieces[rank] for rank in there]
                self._put(known, name, Pieces(name, stored, there, ranks, dump.shapes, dump.joined))
        if len(ranks) > 1:
            dump.pieces = frozenset(name for _, name in self._pieces) if self._join else frozenset()
            dump.notes.append(f"{len({name for _, name in self._pieces})} tensors are in pieces of {len(ranks)} ranks")


def _joined_name(name: str, key: str) -> str:
    return name + key if not name or key.startswith("[") else f"{name}.{key}"
