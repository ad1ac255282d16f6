"""Classes made from the recording: every recorded name and no other, arguments checked, behaviour where written."""

from collections.abc import Callable
from typing import Any

from . import _enums, _forward
from ._arguments import CLASSES, Mismatch, convert, resolve
from ._recording import api, signature

_BEHAVIOUR: dict[str, type] = {}
_CLASS_NOISE = ("__dict__", "__weakref__", "__module__", "__doc__", "__annotations__")
_ZERO: dict[str, Any] = {"int": 0, "bool": False, "str": "", "float": 0.0}


def behaves(*names: str) -> Callable[[type], type]:
    """The decorated class says what the recorded classes of these names do; names not recorded are dropped."""

    def register(cls: type) -> type:
        for name in names:
            _BEHAVIOUR[name] = cls
        return cls

    return register


def new(name: str, /, **private: Any) -> Any:
    """An object of a class that has no public constructor (or whose constructor asks for more)."""
    item = object.__new__(CLASSES[name])
    item.__dict__.update(private, _made=True, _values={})
    return item


def stored(item: Any, name: str) -> Any:
    """The value of a plain property: what was set, or the zero of its recorded type."""
    kind = item._kinds.get(name)
    if name not in item._values and kind in CLASSES and hasattr(CLASSES[kind], "_members"):
        return CLASSES[kind](0)
    if name not in item._values and kind is not None and kind.startswith("list"):
        return []
    return item._values.get(name, _ZERO.get(kind))


def create() -> dict[str, type]:
    """Make every recorded class, bases first."""
    recorded = api()["classes"]
    waiting = list(recorded)
    while waiting:
        name = waiting.pop(0)
        if all(base in CLASSES for base in recorded[name].get("bases", ())):
            CLASSES[name] = _make(name, recorded[name])
        else:
            waiting.append(name)
    for name, entry in recorded.items():
        _nest(CLASSES[name], name, entry)
    return CLASSES


def _make(name: str, entry: dict[str, Any]) -> type:
    if "enum" in entry:
        behaviour = _BEHAVIOUR.get(name)
        extra = {k: v for k, v in vars(behaviour).items() if not k.startswith("__")} if behaviour else None
        return _enums.make(name, entry, extra)
    bases = tuple(CLASSES[base] for base in entry.get("bases", ())) or (object,)
    built = any("__init__" in entry_of.get("def", {}) for entry_of in (entry, *map(_entry, entry.get("bases", ()))))
    return (_Built if built else type)(name, bases, _namespace(name, entry, bases))


def _entry(name: str) -> dict[str, Any]:
    found: dict[str, Any] = api()["classes"][name]
    return found


class _Built(type):
    """As pybind11's metaclass: a class of a user's that overrides __init__ has to call the base's."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        if "_made" not in made.__dict__:
            base = next(kind for kind in cls.__mro__ if kind.__module__ == "tensorrt")
            raise TypeError(f"tensorrt.{base.__name__}.__init__() must be called when overriding __init__")
        return made


def _namespace(name: str, entry: dict[str, Any], bases: tuple[type, ...]) -> dict[str, Any]:
    written = _written(_BEHAVIOUR.get(name))
    kinds: dict[str, Any] = {}
    for base in bases:
        kinds |= getattr(base, "_kinds", {})
    kinds |= dict(entry.get("get", {}))
    space: dict[str, Any] = {k: v for k, v in written.items() if k.startswith("_") and k not in entry.get("def", {})}
    space |= {"__module__": "tensorrt", "_kinds": kinds, "__init__": _refuse(name), "__dir__": _public}
    for method, overloads in entry.get("def", {}).items():
        space[method] = _method(name, method, overloads, written.get("_init" if method == "__init__" else method))
    for method, overloads in entry.get("static", {}).items():
        space[method] = staticmethod(_static(name, method, overloads, written.get(method)))
    for prop in sorted(set(entry.get("get", {})) | set(entry.get("set", ()))):
        space[prop] = _property(name, prop, entry, written.get(prop))
    return space


def _written(behaviour: type | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for cls in reversed(behaviour.__mro__[:-1] if behaviour else ()):
        found |= {name: value for name, value in vars(cls).items() if name not in _CLASS_NOISE}
    return found


def _public(self: Any) -> list[str]:
    """Without what the fake keeps for itself: scripts that list an object's names see what the real one has."""
    return [name for name in object.__dir__(self) if not name.startswith("_") or name.startswith("__")]


def _refuse(name: str) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        raise TypeError(f"tensorrt.{name}: No constructor defined!")

    return __init__


def _method(owner: str, name: str, texts: list[str], behaviour: Any) -> Callable[..., Any]:
    if texts and texts[0].startswith("python"):
        return _PYTHON[name]
    overloads = [signature(text) for text in texts]

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "__init__":
            self.__dict__.update(_made=True, _values={})
        bound = resolve(name, overloads, args, kwargs)
        real = _forward.method(self, owner, name, args, kwargs)
        if behaviour is None and name != "__init__":
            raise NotImplementedError(f"the fake TensorRT does not do {owner}.{name}")
        return _forward.attach(behaviour(self, *bound) if behaviour else None, real)

    call.__name__, call.__qualname__ = name, f"{owner}.{name}"
    call.__doc__ = "\n".join(texts)
    return call


def _static(owner: str, name: str, texts: list[str], behaviour: Any) -> Callable[..., Any]:
    overloads = [signature(text) for text in texts]

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = resolve(name, overloads, args, kwargs)
        real = _forward.static(owner, name, args, kwargs)
        if behaviour is None:
            raise NotImplementedError(f"the fake TensorRT does not do {owner}.{name}")
        return _forward.attach(behaviour.__func__(*bound), real)

    call.__doc__ = "\n".join(texts)
    return call


def _property(owner: str, name: str, entry: dict[str, Any], written: Any) -> property:
    readable, writable = name in entry.get("get", {}), name in entry.get("set", ())
    kind = entry.get("get", {}).get(name)

    def get(self: Any) -> Any:
        if not readable:
            raise AttributeError(f"unreadable attribute '{name}'")
        real = _forward.get(self, name)
        return _forward.attach(written.fget(self) if isinstance(written, property) else stored(self, name), real)

    def put(self: Any, value: Any) -> None:
        try:
            bound = convert(value, kind) if kind else value
        except Mismatch:
            text = f"incompatible function arguments: {owner}.{name} takes {kind}, not {value!r}"
            raise TypeError(text) from None
        _forward.put(self, name, value)
        if isinstance(written, property) and written.fset:
            written.fset(self, bound)
        else:
            self._values[name] = bound

    return property(get, put if writable else None)


def _nest(cls: type, name: str, entry: dict[str, Any]) -> None:
    if "." in name:
        outer, _, inner = name.partition(".")
        setattr(CLASSES[outer], inner, cls)
    for alias, target in entry.get("alias", {}).items():
        setattr(cls, alias, CLASSES[target])
    for constant, text in entry.get("const", {}).items():
        kind, _, member = text.rpartition(".")
        found = CLASSES.get(kind) or CLASSES[f"ILogger.{kind}"]
        setattr(cls, constant, getattr(found, member))


def common_enter(this: Any) -> Any:
    """`with` on an object; deprecated in the real module."""
    return this


def common_exit(this: Any, exc_type: Any, exc_value: Any, traceback: Any) -> None:
    """The end of a `with`: nothing."""


_PYTHON: dict[str, Any] = {"__enter__": common_enter, "__exit__": common_exit}
