"""Two files byte by byte, two folders file by file, and two tactic replays or records of tactics layer by layer."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import open_regular
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.diff.graph_side import BLOCK
from layerwise._tool.debugtools.diff.outcome import DiffOutcome
from layerwise._tool.debugtools.engines.tactics import Algorithm, Choice, TacticReplay

_BEFORE, _ROWS, _ROW = 16, 5, 8


def diff_bytes(a: Path, b: Path) -> DiffOutcome:
    """Compare two files of any kind: where they first differ, and in how many bytes."""
    outcome = DiffOutcome("bytes")
    with _Reader(a) as first, _Reader(b) as second:
        if first.size != second.size:
            text = f"sizes differ: {first.size} and {second.size} bytes"
            outcome.section("size", "size").add(text, a=first.size, b=second.size)
        at, count = _compared(first, second)
        if at is not None:
            text = "\n".join(_context(first, second, at))
            outcome.section("first difference", "first").add(text, offset=at, bytes_that_differ=count)
        length = min(first.size, second.size)
        if outcome.equal:
            outcome.summary = f"equal: {first.size} bytes"
            if not first.size:
                outcome.nothing_compared("both files are empty")
        elif at is None:
            outcome.summary = f"one is the beginning of the other: the first {length} bytes are equal"
        else:
            outcome.summary = f"{count} of {length} bytes differ, the first at offset {at} (0x{at:x})"
    return outcome


def same_file(a: Path, b: Path) -> bool:
    """True if two files hold the same bytes."""
    with _Reader(a) as first, _Reader(b) as second:
        return first.size == second.size and all(x == y for x, y in zip(first.blocks(), second.blocks(), strict=True))


def diff_folders(a: Path, b: Path) -> DiffOutcome:
    """Compare two folders and all below them, by name and then byte by byte. Links are not followed."""
    outcome = DiffOutcome("folders")
    first, second = (set(_files(folder)) for folder in (a, b))
    for title, key, names in (("only in the first", "only_a", first - second),
                              ("only in the second", "only_b", second - first)):  # fmt: skip
        section = outcome.section(title, key)
        for name in sorted(names):
            section.add(shown(name, 300), path=name)
    section = outcome.section("files that differ", "changed")
    for name in sorted(first & second):
        found = _changed(a / name, b / name)
        if found:
            section.add(f"{shown(name, 300)}: {found}", path=name, how=found)
    equal = len(first & second) - len(section.items)
    outcome.summary = "equal: " if outcome.equal else "folders differ: "
    outcome.summary += f"{equal} files are equal, {len(section.items)} differ, " + (
        f"{len(first - second)} are only in the first, {len(second - first)} only in the second"
    )
    if not first | second:
        outcome.nothing_compared("there is no file in either folder")
    return outcome


def _files(folder: Path) -> Iterator[str]:
    """Names of all files below a folder, relative to it; links and special files are named, and not opened."""
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in (*names, *links):
            yield (Path(place) / name).relative_to(folder).as_posix()


def _changed(a: Path, b: Path) -> str:
    if a.is_symlink() or b.is_symlink():
        same = a.is_symlink() and b.is_symlink() and a.readlink() == b.readlink()
        return "" if same else "a link that leads elsewhere"
    try:
        return "" if same_file(a, b) else diff_bytes(a, b).summary
    except BadFile as error:
        return error.reason


class _Reader:
    """A regular file, read in blocks or around a place."""

    def __init__(self, path: Path) -> None:
        self._fd = open_regular(path)
        self.size = os.fstat(self._fd).st_size

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def read(self, start: int, count: int) -> bytes:
        return os.pread(self._fd, count, start)

    def blocks(self) -> Iterator[bytes]:
        for start in range(0, self.size, BLOCK):
            yield self.read(start, BLOCK)


def _compared(a: _Reader, b: _Reader) -> tuple[int | None, int]:
    """Where the common length first differs (None: nowhere), and in how many bytes."""
    first, count = None, 0
    for number, (x, y) in enumerate(zip(a.blocks(), b.blocks(), strict=False)):
        length = min(len(x), len(y))
        if x[:length] == y[:length]:
            continue
        unlike = np.frombuffer(x, np.uint8, length) != np.frombuffer(y, np.uint8, length)
        count += int(np.count_nonzero(unlike))
        first = number * BLOCK + int(np.argmax(unlike)) if first is None else first
    return first, count


def _context(a: _Reader, b: _Reader, at: int) -> Iterator[str]:
    """Rows of bytes around a place, of both files; and the line, where that is text."""
    start = max(0, at - _BEFORE) // _ROW * _ROW
    for row in range(start, start + _ROWS * _ROW, _ROW):
        x, y = a.read(row, _ROW), b.read(row, _ROW)
        mark = " " if x == y else "|"
        if x or y:
            yield f"{row:08x}  {_hex(x)}  {mark}  {_hex(y)}  {_ascii(x)}  {_ascii(y)}".rstrip()
    head = a.read(0, min(at + 1, BLOCK)) if at < BLOCK else b"\0"
    if b"\0" not in head:
        line = head.count(b"\n", 0, at) + 1
        yield f"line {line}: {_line(a, at)!r} and {_line(b, at)!r}"


def _line(reader: _Reader, at: int) -> str:
    start = max(0, at - 200)
    before = reader.read(start, at - start).rpartition(b"\n")[2]
    text = before + reader.read(at, 200).partition(b"\n")[0]
    return shown(text.decode(errors="backslashreplace"), 120)


def _hex(data: bytes) -> str:
    return data.hex(" ").ljust(_ROW * 3 - 1)


def _ascii(data: bytes) -> str:
    return "".join(chr(c) if 32 <= c < 127 else "." for c in data).ljust(_ROW)


def diff_replays(a: TacticReplay, b: TacticReplay) -> DiffOutcome:
    """Compare layer by layer."""
    outcome = DiffOutcome("tactics")
    changed = outcome.section("layers with another algorithm", "changed")
    for name, algorithm in a.layers.items():
        other = b.layers.get(name)
        if other is not None and other != algorithm:
            changed.add(_text(name, algorithm, other), layer=name, a=algorithm.fields(), b=other.fields())
    for title, key, one, two in (("layers only in the first", "only_a", a, b),
                                 ("layers only in the second", "only_b", b, a)):  # fmt: skip
        section = outcome.section(title, key)
        for name in one.layers:
            if name not in two.layers:
                section.add(shown(name, 300), layer=name)
    common = len(a.layers.keys() & b.layers.keys())
    verdict = "equal" if outcome.equal else "replays differ"
    outcome.summary = f"{verdict}: {common - len(changed.items)} of {common} common layers have the same algorithm"
    if not a.layers and not b.layers:
        outcome.nothing_compared("neither replay has a layer")
    return outcome


def _text(name: str, a: Choice, b: Choice) -> str:
    lines = [f"Layer: {shown(name, 300)}"]
    if not isinstance(a, Algorithm) or not isinstance(b, Algorithm):
        return "\n".join([*lines, f"    {shown(str(a), 300)} → {shown(str(b), 300)}"])
    if (a.implementation, a.tactic) != (b.implementation, b.tactic):
        lines.append(f"    implementation {a.implementation} → {b.implementation}, tactic {a.tactic} → {b.tactic}")
    for what, before, after in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        if len(before) != len(after):
            lines.append(f"    {what}s: {len(before)} → {len(after)}")
        for number, (x, y) in enumerate(zip(before, after, strict=False)):
            if x != y:
                lines.append(f"    {what} {number}: {shown(str(x), 300)} → {shown(str(y), 300)}")
    return "\n".join(lines)
