"""Ways to damage a file or a folder that a job, or the workspace, needs."""

import json
import os
import random
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

HUGE = 100 << 30
FILES = ("events.jsonl", "spec.json", "lock", "replies.jsonl", "log.txt", "artifacts", "tag", "reserve", "")
"""What is in a job's folder, and the folder itself."""


def clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("x")


def link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def unix_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # its address must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE)


def content(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


REPLACED: dict[str, Callable[[Path], None]] = {
    "folder": folder,
    "link to a file": link("/etc/passwd"),
    "link to zeros": link("/dev/zero"),
    "link to a folder": link("/usr"),
    "dangling link": link("/nowhere/at/all"),
    "loop": loop,
    "pipe": os.mkfifo,
    "socket": unix_socket,
    "100 GB": sparse,
    "missing": lambda path: None,
    "empty": content(b""),
    "garbage": content(b"\x00\xff\x1b[31m{\n" * 50),
    "wrong type": content(b'[1, {"v": 1}]\n'),
}
if os.geteuid() == 0:
    REPLACED["device"] = lambda path: os.mknod(path, 0o20600, os.makedev(1, 5))


def replace(path: Path, how: str) -> None:
    """Put what `how` names in the place of a file or folder."""
    clear(path)
    REPLACED[how](path)


STRANGE_NAMES = (
    "007", "-1", "1e5", "٣", "³", "1" + "0" * 30, "9" * 18, " 5", "5 ", "+5", "0", "a\nb", "\x1b[31m7", "..7", "0x10",
    "1_0", "½",
)  # fmt: skip

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1e400, float("nan"), -(10**400), 10**300, "", "7", "\x1b[31m\n", "../../x", [], [[]], {},
    {"a": {}}, [None], "x" * 3000,
)  # fmt: skip


def events(draw: random.Random) -> list[dict[str, Any]]:
    """A job's whole story, with a wrong value in some field of some of its events, or a field less or more."""
    story: list[dict[str, Any]] = [
        {"type": "state", "state": "queued", "attempt": 1},
        {"type": "state", "state": "running", "attempt": 1, "pid": 0, "supervisor": 1, "gpus": []},
        {"type": "progress", "done": 1, "total": 2, "unit": "tensors", "text": "x"},
        {"type": "log", "level": "info", "text": "a"},
        {"type": "warning", "text": "b"},
        {"type": "row", "table": "layers", "row": {"name": "y", "passed": True, "max_abs": 0.0, "index": [0]}},
        {"type": "row", "table": "verdicts", "row": {"n": 1, "verdict": "bad", "nodes": 3, "measured": {"over": 1}}},
        {"type": "row", "table": "suspects", "row": {"i": 0, "node": "n", "op": "Add", "local": 1.0, "region": []}},
        {"type": "question", "id": "1.1", "question": {"text": "which?", "choices": ["good", "bad"]}},
        {"type": "result", "data": {"passed": True, "summary": "ok", "found": [], "files": {}, "unmatched": []}},
        {"type": "card", "kind": "error", "summary": "s", "detail": "d", "last_event": {"n": 1}, "command": "c"},
        {"type": "state", "state": "failed", "attempt": 1},
    ]  # fmt: skip
    story = [{"v": 1, "n": n + 1, "t": 1.7e9 + n, **event} for n, event in enumerate(story)]
    for _ in range(draw.randint(1, 4)):
        _spoil(draw.choice(story), draw)
    if draw.random() < 0.3:
        draw.choice(story)["spill"] = draw.choice(VALUES)
    return story


def _spoil(value: dict[str, Any], draw: random.Random) -> None:
    key = draw.choice(sorted(value)) if value else "x"
    inner = value.get(key)
    if isinstance(inner, dict) and draw.random() < 0.7:
        _spoil(inner, draw)
    elif draw.random() < 0.15:
        value.pop(key, None)
    else:
        value[key] = draw.choice(VALUES)


def write_story(path: Path, draw: random.Random) -> None:
    """A journal with wrong values in it."""
    path.write_bytes(b"".join(json.dumps(event).encode() + b"\n" for event in events(draw)))
