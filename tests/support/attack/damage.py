"""What the files of a job folder are replaced by."""

import json
import os
import random
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

_SPARSE = 3 << 30
_LONG = 48 << 20
_DEEP = 200_000
VALUES: tuple[Any, ...] = (
    None, True, -1, 1e308, "x", "\x1b[31m\x07", [], {}, [[]], {"a": {"b": []}}, 10**30, float("nan"), "9" * 5000,
)  # fmt: skip
NAMES = (
    "0", "-1", "\u0663", "\u00b2", "9" * 30, "007", " 1", "1 ", "1\n2", "\x1b[31m1", ".5", "1.0", "x", "lock",
    ".trash-1-2", ".last", ".bell", "\u202e1", "1e3",
)  # fmt: skip


def replaced(path: Path, chance: random.Random, user: Path) -> str:
    """Put something else in the place of a file or folder; what, in words. user: a folder of the user's to point to."""
    kind = chance.choice(list(KINDS))
    _remove(path)
    KINDS[kind](path, chance, user)
    return kind


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _folder(path: Path, chance: random.Random, user: Path) -> None:
    path.mkdir()
    (path / "within").write_text("x")


def _link(path: Path, chance: random.Random, user: Path) -> None:
    """To a file or a folder of the user's."""
    path.symlink_to(user / chance.choice(("kept.txt", "kept", "kept/below.txt")))


def _dangling(path: Path, chance: random.Random, user: Path) -> None:
    path.symlink_to(user / "made-by-somebody")


def _loop(path: Path, chance: random.Random, user: Path) -> None:
    path.symlink_to(path)


def _fifo(path: Path, chance: random.Random, user: Path) -> None:
    os.mkfifo(path)


def _device(path: Path, chance: random.Random, user: Path) -> None:
    path.symlink_to("/dev/zero")


def _socket(path: Path, chance: random.Random, user: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:  # a socket's path may have 107 bytes
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _sparse(path: Path, chance: random.Random, user: Path) -> None:
    with path.open("wb") as file:
        file.truncate(_SPARSE)


def _long(path: Path, chance: random.Random, user: Path) -> None:
    """One line without an end."""
    path.write_bytes(b'{"v":1,"n":1,"t":1.0,"type":"log","text":"' + b"x" * _LONG)


def _many(path: Path, chance: random.Random, user: Path) -> None:
    line = b'{"v":1,"n":%d,"t":1.0,"type":"progress","done":1,"total":2,"unit":"","text":""}\n'
    path.write_bytes(b"".join(line % n for n in range(1, 200_000)))


def _bytes(path: Path, chance: random.Random, user: Path) -> None:
    path.write_bytes(chance.randbytes(chance.randrange(5000)))


def _empty(path: Path, chance: random.Random, user: Path) -> None:
    path.touch()


def _absent(path: Path, chance: random.Random, user: Path) -> None:
    pass


def _deep(path: Path, chance: random.Random, user: Path) -> None:
    path.write_bytes(b"[" * _DEEP + b"]" * _DEEP + b"\n")


def _value(path: Path, chance: random.Random, user: Path) -> None:
    """JSON of another type."""
    path.write_text(json.dumps(chance.choice(VALUES)) + "\n")


def _unreadable(path: Path, chance: random.Random, user: Path) -> None:
    path.write_text("x")
    path.chmod(0)


KINDS: dict[str, Callable[[Path, random.Random, Path], None]] = {
    "a folder": _folder, "a link": _link, "a link to nothing": _dangling, "a link to itself": _loop, "a FIFO": _fifo,
    "/dev/zero": _device, "a socket": _socket, "3 sparse GB": _sparse, "a line without end": _long,
    "200,000 lines": _many, "random bytes": _bytes, "an empty file": _empty, "nothing": _absent,
    "deep nesting": _deep, "a JSON value": _value, "an unreadable file": _unreadable,
}  # fmt: skip


def mutated_lines(path: Path, chance: random.Random) -> str:
    """Replace some fields of a file of JSON lines by values of other types."""
    lines = path.read_bytes().splitlines()
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(lines)) if lines else 0
        lines[at : at + 1] = [_mutated(lines[at] if lines else b"{}", chance)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return "fields of other types"


def _mutated(line: bytes, chance: random.Random) -> bytes:
    try:
        value = json.loads(line)
    except ValueError:
        return line
    holders = [value] if isinstance(value, dict) else []
    holders += [inner for inner in (value.values() if holders else ()) if isinstance(inner, dict)]
    holders = [holder for holder in holders if holder]
    if holders:
        holder = chance.choice(holders)
        holder[chance.choice(sorted(holder))] = chance.choice(VALUES)
    return json.dumps(value).encode()
