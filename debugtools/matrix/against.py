"""What differs between two runs of a matrix."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import MOST, read_file
from layerwise._tool.backends.wording import in_words
from layerwise._tool.debugtools.matrix.rows import CellRow, Change, MatrixResult

_PARTS = {"model": "the model", "feeds": "the feeds", "spec": "what it is asked"}


def read_result(path: Path) -> MatrixResult:
    """A result file. BadFile for what is none."""
    try:
        found = msgspec.json.decode(read_file(path, MOST), type=MatrixResult)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadFile(path, f"no result of a matrix: {in_words(error)}") from error
    if found.version != 1:
        raise BadFile(path, f"a result of a matrix in version {found.version}; this Layerwise reads version 1")
    return found


def changes(before: MatrixResult, now: Sequence[CellRow], *, subset: bool) -> list[Change]:
    """The cells whose verdict or rows are others, or that are new or gone (not if either run is but a part)."""
    old = {row.id: row for row in before.cells}
    both = [row for row in now if row.id in old or not before.subset]
    found = [change for row in both if (change := _change(old.get(row.id), row)) is not None]
    if not subset:
        here = {row.id for row in now}
        found += [_told(row, row.receipt.verdict, "", []) for row in before.cells if row.id not in here]
    return found


def _change(old: CellRow | None, new: CellRow) -> Change | None:
    if old is None:
        return _told(new, "", new.receipt.verdict, [])
    was, now = old.receipt, new.receipt
    rows = bool(was.digest and now.digest and was.digest != now.digest)
    if was.verdict == now.verdict and not rows:
        return None
    why = [_PARTS[part] for part in _PARTS if old.parts.get(part) != new.parts.get(part)]
    why += list(_versions(was.versions, now.versions))
    if was.machine != now.machine and not why:
        why = [f"machine ({was.machine}, now {now.machine})"]
    return _told(new, was.verdict, now.verdict, why)


def _versions(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield f"{name} ({old.get(name, 'none')}, now {new.get(name, 'none')})"


def _told(row: CellRow, was: str, now: str, why: list[str]) -> Change:
    return Change(model=row.model, side=row.side, feed=row.feed, action=row.action, was=was, now=now, why=why)
