"""The journal: whatever is cut off or inserted between lines, complete events survive and broken ones are skipped."""

import json
import math
import os
import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.jobs.journal.events import JOURNAL, EventReader, EventWriter, last_number, read_events
from layerwise._tool.backends.jobs.journal.json_lines import MAX_LINE, decode_line, encode_line
from layerwise._tool.backends.jobs.journal.view import JobView

_LINE = st.builds(
    lambda n, text: json.dumps({"v": 1, "n": n, "t": 1.5, "type": "log", "text": text}).encode() + b"\n",
    st.integers(1, 10**6),
    st.text(max_size=30),
)
_CUT = st.tuples(_LINE, st.integers(1, 10**6)).map(lambda pair: pair[0][: pair[1] % (len(pair[0]) - 2) + 1] + b"\n")
_GARBAGE = st.one_of(
    st.binary(max_size=40).map(lambda raw: raw.replace(b"{", b"") + b"\n"),
    st.sampled_from([b"\n", b"{}\n", b"[]\n", b'{"v":2,"n":1,"t":1,"type":"log"}\n', b"\0" * 50 + b"\n", b"[" * 99999]),
    st.sampled_from([b'{"v":1,"n":"x","t":1,"type":"log"}\n', b'{"v":1,"n":1,"t":1,"type":[]}\n', b"\xff\xfe\n"]),
    _CUT,
).map(lambda raw: raw if raw.endswith(b"\n") else raw + b"\n")


@settings(max_examples=100)
@given(st.lists(st.tuples(st.booleans(), _LINE, _GARBAGE), max_size=12), st.integers(0, 100), st.data())
def test_complete_lines_survive_and_broken_ones_are_skipped(
    tmp_path_factory: object, parts: list[tuple[bool, bytes, bytes]], cut: int, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("job")  # type: ignore[attr-defined]
    pieces = [line if good else garbage for good, line, garbage in parts]
    expected = [json.loads(line) for good, line, _ in parts if good]
    whole = b"".join(pieces)
    reader = EventReader(folder)
    seen = []
    places = [*sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5))), len(whole)]
    for place in places:
        (folder / JOURNAL).write_bytes(whole[:place])
        seen += list(reader.read())
    assert seen == expected
    size = max(0, len(whole) - cut)
    (folder / JOURNAL).write_bytes(whole[:size])
    ends = list(accumulate(map(len, pieces)))
    kept = [json.loads(part[1]) for part, end in zip(parts, ends, strict=True) if part[0] and end <= size]
    assert list(read_events(folder)) == kept
    EventWriter(folder).write("log", text="after")
    assert [*kept, "after"] == [*list(read_events(folder))[:-1], list(read_events(folder))[-1]["text"]]


def test_numbering_continues_after_a_broken_end(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    for i in range(3):
        writer.write("row", table="t", row={"i": i})
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b'{"v":1,"n":4,"t":1.0,"type":"ro')
    assert last_number(tmp_path) == 3
    EventWriter(tmp_path).write("log", text="next")
    events = list(read_events(tmp_path))
    assert [event["n"] for event in events] == [1, 2, 3, 4]
    assert events[-1]["text"] == "next"


def test_numbering_continues_after_much_garbage(tmp_path: Path) -> None:
    EventWriter(tmp_path).write("log", text="first")
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b"x" * 200_000)
    assert EventWriter(tmp_path).write("log", text="second")["n"] == 2
    assert [event["text"] for event in read_events(tmp_path)] == ["first", "second"]


_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_FIELDS = ("state", "attempt", "reason", "gpus", "table", "row", "data", "id", "question", "done", "text", "spill")


@settings(max_examples=100)
@given(
    st.sampled_from(["state", "row", "progress", "question", "card", "result", "x"]),
    st.dictionaries(st.sampled_from(_FIELDS), _VALUE),
)
def test_a_view_accepts_any_complete_event(kind: str, fields: dict[str, object]) -> None:
    view = JobView(Path("7"))
    view.apply({"v": 1, "n": 1, "t": 1.0, "type": kind, **fields})
    view.apply({"v": 1, "n": 2, "t": 2.0, "type": "state", "state": "running", "attempt": view.attempt})
    assert (view.state, view.id, isinstance(view.attempt, int)) == ("running", 7, True)
    view.to_json()


def test_lines_are_short_and_large_events_are_returned_complete(tmp_path: Path) -> None:
    row = {"text": "x" * 50_000, "name": "\x1b[31m\ud800"}
    EventWriter(tmp_path).write("row", table="t", row=row)
    assert all(len(line) <= MAX_LINE for line in (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True))
    assert next(read_events(tmp_path))["row"] == row
    (tmp_path / "artifacts" / "event-1.json").unlink()
    assert list(read_events(tmp_path)) == []


def test_numpy_values_and_nan_survive(tmp_path: Path) -> None:
    EventWriter(tmp_path).write(
        "row", table="t", row={"a": np.float32(1.5), "b": np.arange(3), "c": math.inf, "d": math.nan}
    )
    row = next(read_events(tmp_path))["row"]
    assert (row["a"], row["b"], row["c"]) == (1.5, [0, 1, 2], math.inf)
    assert math.isnan(row["d"])


class _Row(msgspec.Struct, omit_defaults=True):
    tensor: str
    error: float
    shape: tuple[int, ...] = ()
    note: str = ""


@given(
    st.builds(_Row, st.text(max_size=9), st.floats(), st.lists(st.integers(), max_size=3).map(tuple), note=st.text()),
    st.sampled_from([None, np.float32("nan"), np.float64(0.1), np.bool_(True), -math.inf]),
)
def test_a_row_that_is_a_struct_is_written_as_the_object_it_stands_for(row: _Row, value: Any) -> None:
    row = msgspec.structs.replace(row, error=row.error if value is None else value)
    plain = {"tensor": row.tensor, "error": row.error, "shape": row.shape, "note": row.note}
    meant = {key: field for key, field in plain.items() if key in ("tensor", "error") or field}
    event = {"v": 1, "n": 1, "t": 1.5, "type": "row", "table": "layers"}
    lines = [encode_line({**event, "row": fields}) for fields in (row, meant)]
    assert all(line.isascii() and line.count(b"\n") == 1 for line in lines)
    first, second = map(decode_line, lines)
    assert repr(first) == repr(second) and first is not None


def test_events_can_be_read_from_a_number_on(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    for i in range(5):
        writer.write("log", text=str(i))
    assert [event["text"] for event in read_events(tmp_path, after=3)] == ["3", "4"]


def test_lines_of_several_threads_are_not_mixed(tmp_path: Path) -> None:
    code = (
        "import sys, threading, pathlib; from layerwise._tool.backends.jobs.journal.events import EventWriter\n"
        "w = EventWriter(pathlib.Path(sys.argv[1]))\n"
        "go = lambda k: [w.write('row', table=str(k), row={'i': i}) for i in range(200)]\n"
        "t = [threading.Thread(target=go, args=(k,)) for k in range(4)]\n"
        "[x.start() for x in t]; [x.join() for x in t]"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=os.environ)
    events = list(read_events(tmp_path))
    assert [event["n"] for event in events] == list(range(1, 801))
    for k in range(4):
        assert [event["row"]["i"] for event in events if event["table"] == str(k)] == list(range(200))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["lseek", "pread", "fstat", "open"])
def test_a_line_written_during_reading_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, when: str
) -> None:
    writer, system, left = EventWriter(tmp_path), getattr(os, call), list(range(20))

    def meanwhile() -> None:
        if left:
            count = left.pop()
            with monkeypatch.context() as quiet:
                quiet.setattr(os, call, system)
                writer.write("row", table="layers", row={"i": count})

    def interrupted(*args: Any, **options: Any) -> Any:
        if when == "before":
            meanwhile()
        try:
            return system(*args, **options)
        finally:
            if when == "after":
                meanwhile()

    reader = EventReader(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, call, interrupted)
        seen = [event["n"] for _ in range(30) for event in reader.read()]
    while left:
        meanwhile()
    seen += [event["n"] for event in reader.read()]
    assert seen == list(range(1, 21))


def test_rows_that_do_not_fit_their_type_are_left_out_and_unknown_fields_ignored() -> None:
    broken: list[Any] = [{"tensor": 7, "error": 1.0}, {"tensor": "b"}, 3, None]
    assert typed([{"tensor": "a", "error": 1, "of": "later"}, *broken], _Row) == [_Row("a", 1.0)]
