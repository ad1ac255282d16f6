"""A pickle of torch.save read as plain data: opcodes are interpreted here, and nothing is imported or called.

Known are the opcodes that build dicts, lists, tuples, numbers and texts, and what a tensor is made of: a storage (a
persistent id), its view (`torch._utils._rebuild_tensor_v2`, `_v3`), `OrderedDict`, names of data types. Anything else
is an error that names it.
"""

import math
import pickletools
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.wording import in_words

_STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "ByteStorage": "uint8", "CharStorage": "int8", "ShortStorage": "int16", "IntStorage": "int32",
    "LongStorage": "int64", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}  # fmt: skip
_TYPES = {name: name for name in (
    "float32", "float64", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "int64", "bool", "uint16", "uint32",
    "uint64", "complex64", "complex128", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu",
)}  # fmt: skip
_UNTYPED = frozenset({"torch.storage UntypedStorage", "torch UntypedStorage"})
_HARMLESS = frozenset({"torch Size", "torch device", "collections OrderedDict"})
_ADVICE = "nothing is unpickled but dicts, lists and tuples of tensors; save plain tensors, or safetensors"
_MOST_DIMS = 64


class Strided(Struct, frozen=True):
    """A tensor as a view of a storage. key: of the storage; offset and strides: in elements of `dtype`.

    conj, neg: its values are the conjugates, or the negatives, of those stored.
    """

    key: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    conj: bool = False
    neg: bool = False

    @property
    def size(self) -> int:
        """Its elements."""
        return math.prod(self.shape)

    @property
    def end(self) -> int:
        """The elements of the storage up to its last one."""
        if not self.size:
            return 0
        return self.offset + 1 + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))


class _Name(Struct, frozen=True):
    """A global of the pickle, which is only looked at."""

    name: str


class _Storage(Struct, frozen=True):
    key: str
    dtype: str | None  # None: bytes
    count: int


class _Mark:
    pass


def read_pickle(path: str, data: bytes) -> Any:
    """What a pickle holds: dicts, lists, tuples, plain values, and Strided for tensors.

    BadFile, which names `path`, for everything else.
    """
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                return machine.only()
            machine.step(opcode.name, argument)
    except _Refused as error:
        raise BadFile(path, f"{in_words(error, 200)}: {_ADVICE}") from None
    except (ValueError, TypeError, IndexError, KeyError, OverflowError, RecursionError, AttributeError) as error:
        raise BadFile(path, f"its pickle is damaged: {in_words(error, 200)}") from None
    raise BadFile(path, "its pickle is damaged: it does not end")


class _Refused(Exception):
    pass


class _Machine:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def only(self) -> Any:
        if len(self.stack) != 1:
            raise ValueError("it does not end with one value")
        return self.stack[0]

    def step(self, name: str, argument: Any) -> None:
        if name in _PUSHED:
            self.stack.append(argument)
        elif name in _STEPS:
            _STEPS[name](self, argument)
        elif name not in _IGNORED:
            raise _Refused(f"its pickle has the opcode {name}")

    def since_mark(self) -> list[Any]:
        for place in range(len(self.stack) - 1, -1, -1):
            if isinstance(self.stack[place], _Mark):
                items = self.stack[place + 1 :]
                del self.stack[place:]
                return items
        raise ValueError("a mark is missing")

    def put(self, place: int) -> None:
        self.memo[place] = self.stack[-1]

    def fill(self, pairs: list[Any]) -> None:
        """Set items of the dict on top of the stack."""
        found = self.stack[-1]
        if type(found) is not dict or len(pairs) % 2:
            raise ValueError("items of what is no dict")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if key is not None and not isinstance(key, str | int | float):
                raise ValueError("a key that is neither text nor number")
            if key in found:
                raise ValueError(f"the key {str(key)[:80]!r} is there twice")
            found[key] = value

    def extend(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise ValueError("items of what is no list")
        self.stack[-1].extend(items)

    def take(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise ValueError("too few values")
        items = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return items

    def load(self, name: str) -> None:
        """A global. `name`: its module and its name, with a space between."""
        kind = name.removeprefix("torch ")
        known = name.startswith("torch ") and (kind in _STORAGES or kind in _TYPES)
        if not known and name not in _UNTYPED | _HARMLESS and name not in _CALLS:
            raise _Refused(f"it holds a {name.replace(' ', '.')}")
        self.stack.append(_Name(name))

    def load_from_stack(self) -> None:
        module, name = self.take(2)
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("a global without a name")
        self.load(f"{module} {name}")

    def reduce(self) -> None:
        called, arguments = self.take(2)
        if not isinstance(called, _Name) or not isinstance(arguments, tuple):
            raise ValueError("a call of what is no global")
        if called.name not in _CALLS:
            raise _Refused(f"it calls {called.name.replace(' ', '.')}")
        self.stack.append(_CALLS[called.name](arguments))

    def build(self) -> None:
        """Attributes of an object: those of an OrderedDict (`_metadata` of a state dict) are of no use."""
        found, _ = self.take(2)
        if type(found) is not dict:
            raise _Refused("it has an object with attributes")
        self.stack.append(found)

    def storage(self) -> None:
        word, kind, key, _, count = self.take(1)[0]
        if word != "storage" or not isinstance(kind, _Name) or not isinstance(key, str) or not _is_count(count):
            raise ValueError("a storage that is none")
        dtype = None if kind.name in _UNTYPED else _STORAGES.get(kind.name.removeprefix("torch "))
        if dtype is None and kind.name not in _UNTYPED:
            raise _Refused(f"it holds a {kind.name.replace(' ', '.')}")
        self.stack.append(_Storage(key, dtype, count))


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _tensor(arguments: tuple[Any, ...]) -> Strided:
    storage, offset, shape, strides = arguments[:4]
    if not isinstance(storage, _Storage):
        raise ValueError("a tensor without a storage")
    if storage.dtype is None:
        raise ValueError("a tensor without a data type")
    return _strided(storage, storage.dtype, offset, shape, strides, arguments[6:])


def _typed_tensor(arguments: tuple[Any, ...]) -> Strided:
    storage, offset, shape, strides, _, _, kind = arguments[:7]
    if not isinstance(storage, _Storage) or not isinstance(kind, _Name):
        raise ValueError("a tensor without a storage or a data type")
    name = _TYPES.get(kind.name.removeprefix("torch "))
    if name is None:
        raise _Refused(f"it holds a tensor of {kind.name.replace(' ', '.')}")
    return _strided(storage, name, offset, shape, strides, arguments[7:])


def _strided(
    storage: _Storage, dtype: str, offset: Any, shape: Any, strides: Any, metadata: tuple[Any, ...]
) -> Strided:
    """metadata: what may follow, one dict of the bits `conj` and `neg`."""
    if not isinstance(shape, tuple) or not isinstance(strides, tuple) or len(shape) != len(strides):
        raise ValueError("a tensor without a shape or strides")
    if len(shape) > _MOST_DIMS or not all(map(_is_count, (offset, *shape, *strides))):
        raise ValueError("a tensor whose shape, strides or offset are no sizes")
    bits = metadata[0] if metadata and metadata[0] is not None else {}
    if len(metadata) > 1 or not isinstance(bits, dict) or not bits.keys() <= {"conj", "neg"}:
        raise _Refused("it holds a tensor with metadata that is not known")
    tensor = Strided(storage.key, dtype, shape, strides, offset, bits.get("conj") is True, bits.get("neg") is True)
    if tensor.end > storage.count:
        raise ValueError("a tensor that lies outside of its storage")
    return tensor


def _parameter(arguments: tuple[Any, ...]) -> Any:
    if not arguments or not isinstance(arguments[0], Strided):
        raise ValueError("a parameter that is no tensor")
    return arguments[0]


def _ordered(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    if arguments:  # Python sets the items one by one
        raise _Refused("it makes an OrderedDict of something")
    return {}


def _size(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(arguments) != 1 or not isinstance(arguments[0], tuple) or len(arguments[0]) > _MOST_DIMS:
        raise ValueError("a size that is none")
    return arguments[0]


_CALLS: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "torch._utils _rebuild_tensor_v2": _tensor,
    "torch._utils _rebuild_tensor_v3": _typed_tensor,
    "torch._utils _rebuild_parameter": _parameter,
    "collections OrderedDict": _ordered,
    "torch Size": _size,
    "torch device": lambda arguments: None,
}
_PUSHED = frozenset({
    "BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT", "BINUNICODE", "UNICODE",
    "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BINSTRING", "SHORT_BINSTRING",
    "STRING",
})  # fmt: skip
_IGNORED = frozenset({"PROTO", "FRAME"})
_STEPS: dict[str, Callable[[_Machine, Any], Any]] = {
    "MARK": lambda machine, _: machine.stack.append(_Mark()),
    "NONE": lambda machine, _: machine.stack.append(None),
    "NEWTRUE": lambda machine, _: machine.stack.append(True),
    "NEWFALSE": lambda machine, _: machine.stack.append(False),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_TUPLE": lambda machine, _: machine.stack.append(()),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.since_mark())),
    "TUPLE1": lambda machine, _: machine.stack.append(tuple(machine.take(1))),
    "TUPLE2": lambda machine, _: machine.stack.append(tuple(machine.take(2))),
    "TUPLE3": lambda machine, _: machine.stack.append(tuple(machine.take(3))),
    "LIST": lambda machine, _: machine.stack.append(machine.since_mark()),
    "APPEND": lambda machine, _: machine.extend(machine.take(1)),
    "APPENDS": lambda machine, _: machine.extend(machine.since_mark()),
    "SETITEM": lambda machine, _: machine.fill(machine.take(2)),
    "SETITEMS": lambda machine, _: machine.fill(machine.since_mark()),
    "BINPUT": lambda machine, place: machine.put(place),
    "LONG_BINPUT": lambda machine, place: machine.put(place),
    "MEMOIZE": lambda machine, _: machine.put(len(machine.memo)),
    "BINGET": lambda machine, place: machine.stack.append(machine.memo[place]),
    "LONG_BINGET": lambda machine, place: machine.stack.append(machine.memo[place]),
    "GLOBAL": lambda machine, name: machine.load(name),
    "STACK_GLOBAL": lambda machine, _: machine.load_from_stack(),
    "REDUCE": lambda machine, _: machine.reduce(),
    "BUILD": lambda machine, _: machine.build(),
    "BINPERSID": lambda machine, _: machine.storage(),
}
