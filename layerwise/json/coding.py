"""Encoder and Decoder: arrays, tensors and classes that register how they are written and read."""

import functools
import importlib
import json
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import atomic_writer, open_regular
from layerwise._tool.backends.filesystem.states import state_of
from layerwise._tool.backends.formats.json_arrays import MARK, Span, scan, span_array
from layerwise._tool.backends.formats.json_text import check_values
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch_bridge import is_tensor
from layerwise.constants import LEGACY_TYPE_MARKER, TAB, TYPE_MARKER
from layerwise.json import arrays
from layerwise.logger import G_LOGGER
from layerwise.util.files import check_there, is_file_like, load_file, makedirs, save_file

_LEGACY = "__polygraphy_encoded_"
_HOMES = {
    "FormattedArray": "common.struct", "RunResults": "comparator.struct", "IterationResult": "comparator.struct",
    "LazyArray": "comparator.struct", "LazyNumpyArray": "comparator.struct", "AccuracyResult": "comparator.struct",
    "AccuracyResults": "comparator.struct", "TensorInfo": "backend.trt.algorithm_selector",
    "Algorithm": "backend.trt.algorithm_selector", "TacticReplayData": "backend.trt.algorithm_selector",
    **dict.fromkeys(
        (f"{name}{kind}" for name in ("L2", "CosineSimilarity", "Psnr", "Snr") for kind in ("Result", "Threshold")),
        "comparator.compare",
    ),
    **dict.fromkeys(
        ("SimpleThreshold", "LpipsThreshold", "OutputCompareResult", "PerceptualMetricsResult"), "comparator.compare"
    ),
}  # fmt: skip
"""Classes of ours that files name -> the module that registers them when it is imported."""
Function = Callable[[Any], Any]


def str_from_type(typ: type) -> str:
    """What a file calls a class."""
    return typ.__name__


def legacy_str_from_type(typ: type) -> str:
    """What an old file calls a class."""
    return _LEGACY + typ.__name__


class BaseCustomImpl:
    """What both directions share: a registry of functions by class, or by its name in files."""

    polygraphy_registered: ClassVar[dict[Any, Function]] = {}

    @classmethod
    def register(cls, typ: type, alias: str | None = None) -> Callable[[Function], Function]:
        """A decorator for the function that encodes or decodes a class. PolygraphyException if it has one already.

        alias: another name that files have for it.
        """
        return functools.partial(cls._register, typ, alias)

    @classmethod
    def _register(cls, typ: type, alias: str | None, func: Function) -> Function:
        raise NotImplementedError

    @classmethod
    def _add(cls, key: Any, func: Function) -> None:
        if key in cls.polygraphy_registered:
            G_LOGGER.critical(f"Duplicate serialization function for type: {key}.")
        cls.polygraphy_registered[key] = func


class Encoder(BaseCustomImpl, json.JSONEncoder):
    """Writes arrays, tensors and instances of registered classes, for `json.dumps(…, cls=Encoder)`.

    A function that is registered takes an instance and returns a dict, to which the class's name is added.
    """

    polygraphy_registered: ClassVar[dict[Any, Function]] = {}

    @classmethod
    def _register(cls, typ: type, alias: str | None, func: Function) -> Function:
        def marked(obj: Any) -> Any:
            fields = func(obj)
            fields[TYPE_MARKER] = str_from_type(typ)
            return fields

        cls._add(typ, marked)
        return marked

    def default(self, o: Any) -> Any:
        if type(o) in self.polygraphy_registered:
            return self.polygraphy_registered[type(o)](o)
        if is_tensor(o):
            return arrays.encoded_tensor(o) | {TYPE_MARKER: "Tensor"}
        return super().default(o)


class Decoder(BaseCustomImpl):
    """Reads what Encoder wrote, for `json.loads(…, object_pairs_hook=Decoder())`.

    A function that is registered takes the dict, without the class's name.
    """

    polygraphy_registered: ClassVar[dict[Any, Function]] = {}

    @classmethod
    def _register(cls, typ: type, alias: str | None, func: Function) -> Function:
        def unmarked(fields: dict[str, Any]) -> Any:
            fields.pop(TYPE_MARKER, None)
            fields.pop(legacy_str_from_type(typ), None)
            return func(fields)

        for name in filter(None, (legacy_str_from_type(typ), str_from_type(typ), alias)):
            cls._add(name, unmarked)
        return unmarked

    def __call__(self, pairs: Iterable[tuple[str, Any]]) -> Any:
        fields = OrderedDict(pairs)
        name = _class_of(fields)
        if name is None:
            return fields
        if name not in self.polygraphy_registered and name in _HOMES:
            importlib.import_module(f"{__package__.rpartition('.')[0]}.{_HOMES[name]}")
        if name not in self.polygraphy_registered:
            G_LOGGER.critical(f"Could not decode serialized type: {shown(str(name), 100)}: no decoder knows it")
        return self.polygraphy_registered[name](fields)


def _class_of(fields: dict[str, Any]) -> Any:
    name = fields.get(TYPE_MARKER)
    if name is None:
        for key, value in fields.items():
            if key.startswith(_LEGACY) and value == LEGACY_TYPE_MARKER:
                return key.removeprefix(_LEGACY)
    return name


@Encoder.register(np.ndarray)
def _encode_array(array: Any) -> dict[str, Any]:
    return arrays.encoded(array)


@Decoder.register(np.ndarray)
def _decode_array(fields: dict[str, Any]) -> Any:
    return arrays.decoded(fields["array"], fields.get("dtype"))


def _decode_tensor(fields: dict[str, Any]) -> Any:
    fields.pop(TYPE_MARKER, None)
    return arrays.decoded_tensor(fields["tensor"])


Decoder._add("Tensor", _decode_tensor)
Decoder._add("__polygraphy_encoded_Tensor", _decode_tensor)


def to_json(obj: Any) -> str:
    """An object as JSON text."""
    return json.dumps(obj, cls=Encoder, indent=TAB)


def from_json(src: str) -> Any:
    """Read JSON text. json.JSONDecodeError if it is none, PolygraphyException for a class that nobody registered."""
    return json.loads(src, object_pairs_hook=Decoder())


def save_json(obj: Any, dest: Any, description: str | None = None) -> None:
    """Write an object to a file, whole or not at all, or to an object that is one."""
    if is_file_like(dest):
        save_file(to_json(obj), dest, mode="w", description=description)
        return
    if description is not None:
        G_LOGGER.info(f"Saving {description} to {dest}")
    put_off = _PutOff()
    text = json.dumps(obj, default=put_off.default, indent=TAB)
    makedirs(dest)
    with atomic_writer(dest) as stream:
        put_off.write(stream, text)


class _PutOff:
    """Marks in place of arrays, whose values are written in pieces once the rest of the text is known."""

    def __init__(self) -> None:
        self._mark = f"layerwise:{secrets.token_hex(8)}:"
        self._arrays: list[Any] = []
        self._encoder = Encoder()

    def default(self, value: Any) -> Any:
        """What json writes for a value that it does not know."""
        if type(value) is not np.ndarray or Encoder.polygraphy_registered[np.ndarray] is not _encode_array:
            return self._encoder.default(value)
        fields = arrays.encoded(value, f"{self._mark}{len(self._arrays)}")
        self._arrays.append(value)
        return fields | {TYPE_MARKER: "ndarray"}

    def write(self, stream: BinaryIO, text: str) -> None:
        """Write the text, arrays in place of their marks."""
        first, *others = text.split(f'"{self._mark}')
        stream.write(first.encode())
        for array, part in zip(self._arrays, others, strict=True):
            stream.write(b'"')
            for piece in arrays.chunks(array):
                stream.write(piece)
            stream.write(part[part.index('"') :].encode())


def load_json(src: Any, description: str | None = None) -> Any:
    """Read a file, or an object that is one. BadFile names the file and the reason; it is a MissingFile, which is a
    FileNotFoundError too, if there is none.
    """
    if is_file_like(src):
        return from_json(load_file(src, mode="r", description=description))
    if description is not None:
        G_LOGGER.info(f"Loading {description} from {src}")
    check_there(src)
    return _read(src)


class _Reading(Decoder):
    """A Decoder of an open file's text, in which arrays are marks."""

    def __init__(self, descriptor: int, spans: list[Span]) -> None:
        self._descriptor, self._spans = descriptor, spans

    def __call__(self, pairs: Sequence[tuple[str, Any]]) -> Any:  # type: ignore[override]  # json gives a list
        if not pairs or pairs[0][0] != "array":
            return Decoder.__call__(self, pairs)
        text = pairs[0][1]
        number = text[len(MARK) :] if isinstance(text, str) and text.startswith(MARK) else ""
        if not number.isdigit() or int(number) >= len(self._spans):
            return Decoder.__call__(self, pairs)
        return span_array(self._descriptor, self._spans[int(number)], dict(pairs).get("dtype"))


def _read(path: str | os.PathLike[str]) -> Any:
    found = scan(Path(path))
    check_values(path, found.skeleton)
    try:
        with os.fdopen(open_regular(path), "rb", buffering=0) as stream:
            if state_of(stream.fileno()) != found.state:
                raise BadFile(path, "the file has changed while it was read")
            reading = _Reading(stream.fileno(), found.spans)
            return json.loads(found.skeleton.decode(), object_pairs_hook=reading)
    except OSError as error:
        raise BadFile(path, error.strerror or str(error)) from None
    except RecursionError:
        raise BadFile(path, "nested too deeply") from None
    except json.JSONDecodeError as error:
        raise BadFile(path, f"not valid JSON: {shown(str(error), 300)}") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise BadFile(path, f"not in Polygraphy's format: {shown(str(error), 300)}") from None
