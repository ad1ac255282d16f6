"""What a command line does undisturbed: its exit code, its files, its rows. Two runs, to know what varies by itself."""

import collections
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from support.attack.lines import Line
from support.attack.place import Place, tree
from support.attack.programs import run
from support.attack.world import World

from layerwise._tool.backends.jobs.journal.events import read_events

_FIRST = 900_000
_VARYING = ("seconds", "runtime", "runner", "runners", "peak_memory", "summary", "time", "duration", "bytes", "log")
Rows = collections.Counter[str]


class Reference(NamedTuple):
    """code: exit code; seconds: of the slower run; lines: of its jobs' journals.

    made: the digests of each file it makes, and nothing where they vary; rows: those of the first job.
    grows: made.onnx is written each time a smaller model that fails is found.
    """

    code: int
    seconds: float
    lines: int
    made: dict[str, str]
    rows: Rows
    result: dict[str, str]
    grows: bool


class References:
    """The references of a world, each made when it is first asked for."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[str, Reference] = {}
        self._locks: dict[str, threading.Lock] = collections.defaultdict(threading.Lock)
        self._guard, self._number = threading.Lock(), _FIRST

    def of(self, line: Line) -> Reference:
        with self._guard:
            lock = self._locks[line.name]
        with lock:
            if line.name not in self._known:
                self._known[line.name] = _common(self._once(line), self._once(line))
            return self._known[line.name]

    def _once(self, line: Line) -> Reference:
        with self._guard:
            self._number += 1
            place = self._world.place(self._number)
        before = tree(place.work)
        ended = run(place, line.words)
        assert ended.code in (0, 1) and "Traceback" not in ended.said, (line, ended)
        made = {name: digest for name, digest in tree(place.work).items() if before.get(name) != digest}
        folder = newest_job(place)
        lines = 0 if folder is None else (folder / "events.jsonl").read_bytes().count(b"\n")
        rows, result = (Rows(), {}) if folder is None else (rows_of(folder), result_of(folder))
        place.remove()
        return Reference(ended.code, ended.seconds, lines, made, rows, result, "reduce" in line.words)


def _common(one: Reference, other: Reference) -> Reference:
    """What two runs have in common."""
    names = one.made.keys() | other.made.keys()
    made = {name: one.made.get(name, "") if one.made.get(name) == other.made.get(name) else "" for name in names}
    rows = one.rows & other.rows
    result = {key: value for key, value in one.result.items() if other.result.get(key) == value}
    return Reference(
        one.code, max(one.seconds, other.seconds), min(one.lines, other.lines), made, rows, result, one.grows
    )


def newest_job(place: Place) -> Path | None:
    """The folder of the first job that was made after the template's."""
    folders = sorted((int(path.name), path) for path in place.home.glob("jobs/[0-9]*") if path.name.isdecimal())
    return next((path for number, path in folders if number > FIRST_NEW - 1), None)


FIRST_NEW = 5  # the template has four jobs


def rows_of(folder: Path) -> Rows:
    """The rows of a job's tables without what varies, and how often each is there."""
    rows = (event for event in read_events(folder) if event["type"] == "row")
    return Rows(f"{event['table']} {json.dumps(_plain(event['row']), sort_keys=True)}" for event in rows)


def result_of(folder: Path) -> dict[str, str]:
    """The leaves of a job's result by their paths."""
    results = [event.get("data") for event in read_events(folder) if event["type"] == "result"]
    return dict(_leaves("", _plain(results[-1]))) if results else {}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key not in _VARYING}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(f"{path}.{key}", item)
    else:
        yield path, json.dumps(value)
