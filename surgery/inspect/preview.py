"""What a file holds, told within a fraction of a second: for a list of files of which none is open yet.

Nothing of the file is trusted: it is scanned as wire format, no weight is read, and the scan ends at a deadline.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import open_regular
from layerwise._tool.backends.model.record_values import Value, read_value
from layerwise._tool.backends.model.structure import read_tensor, text
from layerwise._tool.backends.model.wire import BYTES, VARINT, Field, Source, WireError, fields

SECONDS = 0.4
_LISTED = 40  # inputs and outputs, each
_LARGEST_VALUE = 1 << 16  # bytes of a value info
_LARGEST_TEXT = 1 << 12
_SMALL = 1 << 12  # an initializer of no more bytes may say that its values are in another file
_EVERY = 64


class Preview(Struct):
    """What is known of a file.

    problem: why it is no ONNX model, "" if it is one. note: what it is instead, where that can be opened too. size:
    bytes on disk. opset: that of ONNX's own operators, 0 if not stated. inputs: without those that initializers give.
    nodes, weights (bytes in this file): of the main graph, at least where `whole` is false. more_inputs, more_outputs:
    those that are not listed. missing: files of weights that are not there.
    """

    size: int = 0
    problem: str = ""
    note: str = ""
    ir_version: int = 0
    opset: int = 0
    producer: str = ""
    inputs: list[Value] = []
    outputs: list[Value] = []
    more_inputs: int = 0
    more_outputs: int = 0
    nodes: int = 0
    weights: int = 0
    missing: list[str] = []
    whole: bool = True


class _Late(Exception):
    """The deadline is over."""


def preview(path: Path, seconds: float = SECONDS) -> Preview:
    """Scan a file for at most about `seconds`. Raises nothing for what is wrong with it: that is its `problem`."""
    import os

    found = Preview()
    try:
        fd = open_regular(path)
    except BadFile as error:
        found.problem = error.reason
        return found
    try:
        found.size = os.fstat(fd).st_size
        _Scan(Source(fd), path, found, time.monotonic() + seconds).model()
    except _Late:
        found.whole = False
    except (WireError, ValueError, RecursionError, OSError) as error:
        found.problem = f"not an ONNX model: {error}"
    finally:
        os.close(fd)
    return found


class _Scan:
    """One file, from its top level to the values of its main graph."""

    def __init__(self, source: Source, path: Path, found: Preview, deadline: float) -> None:
        self._source, self._path, self._found, self._deadline = source, path, found, deadline
        self._initializers: set[str] = set()
        self._checked: set[str] = set()
        self._steps = 0

    def model(self) -> None:
        found, graphs = self._found, []
        if not found.size:
            found.problem = "an empty file"
            return
        for item in self._fields(0, found.size):
            if item.number == 1 and (item.wire != VARINT or not 0 < item.value < 1 << 31):
                raise WireError(f"byte {item.at}: ir_version {item.value}")
            if item.number == 1:
                found.ir_version = item.value
            elif item.number == 2 and item.wire == BYTES:
                found.producer = self._text(item)
            elif item.number == 7 and item.wire == BYTES:
                graphs.append((item.start, item.end))
            elif item.number == 8 and item.wire == BYTES:
                self._opset(item)
        if not graphs:
            found.problem = "not an ONNX model: there is no graph in it"
        for start, end in graphs:
            self._graph(start, end)
        found.inputs = [value for value in found.inputs if value.name not in self._initializers]

    def _fields(self, start: int, end: int) -> Iterator[Field]:
        for item in fields(self._source, start, end):
            self._steps += 1
            if not self._steps % _EVERY and time.monotonic() > self._deadline:
                raise _Late
            yield item

    def _text(self, item: Field) -> str:
        return text(self._source.read(item.start, item.end)) if item.end - item.start <= _LARGEST_TEXT else ""

    def _opset(self, item: Field) -> None:
        domain, version = "", 0
        for part in self._fields(item.start, item.end):
            if part.number == 1 and part.wire == BYTES:
                domain = self._text(part)
            elif part.number == 2 and part.wire == VARINT:
                version = part.value
        if domain in ("", "ai.onnx"):
            self._found.opset = version

    def _graph(self, start: int, end: int) -> None:
        found = self._found
        for item in self._fields(start, end):
            if item.wire != BYTES:
                continue
            if item.number == 1:
                found.nodes += 1
            elif item.number == 5:
                self._initializer(item)
            elif item.number == 11:
                found.more_inputs += not self._value(item, found.inputs)
            elif item.number == 12:
                found.more_outputs += not self._value(item, found.outputs)

    def _value(self, item: Field, values: list[Value]) -> bool:
        """Whether it was put on the list."""
        if len(values) >= _LISTED or item.end - item.start > _LARGEST_VALUE:
            return False
        values.append(read_value(self._source.read(item.start, item.end), 0, item.end - item.start))
        return True

    def _initializer(self, item: Field) -> None:
        found = self._found
        found.weights += item.end - item.start
        if found.ir_version >= 4 and item.end - item.start > _SMALL:
            return
        tensor, _ = read_tensor(self._source, item.start, item.end)
        self._initializers.add(tensor.name)
        place = tensor.external.location if tensor.external is not None else ""
        if place and place not in self._checked and len(self._checked) < _LISTED:
            self._checked.add(place)
            if not (self._path.parent / place).is_file():
                found.missing.append(place)
