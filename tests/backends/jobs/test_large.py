"""Journals of hundreds of megabytes are read in bounded memory, and broken lines in linear time."""

import json
import os
import random
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.clean_fork import fork

from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import EventWriter, last_events, last_number, read_events
from layerwise._tool.backends.jobs.journal.json_lines import MAX_LINE, LineReader
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes.supervise import time_running

MB = 1 << 20
ROOM = 48 * MB
ROW = {"v": 1, "t": 1.7e9, "type": "row", "table": "layers", "row": {"tensor": "x" * 300, "passed": True}}


def rows(count: int) -> bytes:
    return b"".join(json.dumps({**ROW, "n": n + 1}).encode() + b"\n" for n in range(count))


def bounded(folder: Path, read: Callable[[Path], object]) -> None:
    """Call `read` in a child whose memory may grow by ROOM."""
    child = fork()
    if child == 0:
        status = 1
        try:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
            resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
            read(folder)
            status = 0
        except BaseException as error:
            print(type(error), error, file=sys.stderr)
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _drain(folder: Path) -> None:
    for _ in read_events(folder):
        pass


def _writes(folder: Path) -> None:
    assert EventWriter(folder).write("log", text="more")["n"] >= 1


READERS: dict[str, Callable[[Path], object]] = {
    "view": lambda folder: JobView(folder).refresh(),
    "events": _drain,
    "last events": last_events,
    "last number": last_number,
    "time": lambda folder: time_running(folder, 1),
    "earlier rows": lambda folder: JobContext(folder, 1).previous_rows("other"),
    "write": _writes,
}
CONTENTS: dict[str, Callable[[Path], object]] = {
    "rows": lambda path: path.write_bytes(rows(10_000) * 3),
    "one line": lambda path: path.write_bytes(rows(10) + b"x" * (64 * MB)),
    "a line in between": lambda path: path.write_bytes(rows(10) + b"[" * (64 * MB) + b"\n" + rows(10)),
    "long lines": lambda path: path.write_bytes((b'{"v":1,"x":"' + b"y" * (5 * MB) + b'"}\n') * 12),
    "empty lines": lambda path: path.write_bytes(b"\n" * (2 * MB)),
    "a hole": lambda path: _hole(path, 1 << 40),
}


def _hole(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(rows(10))
        file.truncate(size)


@pytest.mark.parametrize("content", CONTENTS)
def test_every_reader_uses_bounded_memory(tmp_path: Path, content: str) -> None:
    CONTENTS[content](tmp_path / "events.jsonl")
    for read in READERS.values():
        bounded(tmp_path, read)


def test_spilled_events_use_bounded_memory(tmp_path: Path) -> None:
    """Many lines that name the same large file, and one file that is too large."""
    (tmp_path / "artifacts").mkdir()
    first = tmp_path / "artifacts" / "event-1.json"
    first.write_text(json.dumps({"type": "log", "text": "x" * (8 * MB)}))
    for n in range(2, 13):
        first.with_name(f"event-{n}.json").hardlink_to(first)
    lines = [{"v": 1, "n": n, "t": 1.0, "type": "log", "spill": f"event-{n}.json"} for n in range(1, 14)]
    with first.with_name("event-13.json").open("wb") as file:
        file.truncate(100 << 30)
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name in ("view", "events", "time", "write"):
        bounded(tmp_path, READERS[name])
    assert 1 <= len(last_events(tmp_path)) <= 10


def test_a_reader_continues_where_it_stopped(tmp_path: Path) -> None:
    """However the file grows and wherever a reader starts, it returns complete lines, never the end of a long one."""
    draw, path = random.Random(3), tmp_path / "lines"
    for _ in range(60):
        parts: list[tuple[bytes, bool]] = []
        for n in range(draw.randint(1, 12)):
            good = json.dumps({"n": n, "x": "y" * draw.choice((0, 10, MAX_LINE - 40))}).encode() + b"\n"
            bad = b"z" * draw.choice((1, MAX_LINE, 3 * MAX_LINE)) + b'{"n":1}\n'
            parts.append((good, True) if draw.random() < 0.6 else (bad, False))
        whole = b"".join(part for part, _ in parts)
        expected = [json.loads(part)["n"] for part, good in parts if good]
        reader, seen, place = LineReader(path), [], 0
        while place < len(whole):
            place = min(len(whole), place + draw.randint(1, 9000))
            path.write_bytes(whole[:place])
            seen += [value["n"] for value in LineReader(path, reader.offset).read()]
            list(reader.read())
        assert seen == expected and reader.offset == len(whole)
