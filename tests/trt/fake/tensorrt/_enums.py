"""pybind11's enums: not integers, equal only to their own kind, `int()`, `.name`, `.value` and `__members__`."""

from typing import Any, ClassVar


class _EnumType(type):
    _members: dict[str, Any]

    @property
    def __members__(cls) -> dict[str, Any]:
        return dict(cls._members)

    def __setattr__(cls, name: str, value: Any) -> None:
        if name in cls.__dict__.get("_members", {}):
            raise AttributeError(f"{cls.__name__}.{name} is read-only")
        super().__setattr__(name, value)


class Enum(metaclass=_EnumType):
    """Base of the generated enums."""

    _members: ClassVar[dict[str, Any]] = {}

    def __new__(cls, value: int) -> "Enum":
        for member in cls._members.values():
            if member.value == value:
                return member
        self = super().__new__(cls)
        self._name, self._value = "???", int(value)
        return self

    @property
    def name(self) -> str:
        return self._name

    @property
    def value(self) -> int:
        return self._value

    def __int__(self) -> int:
        return self._value

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self._name}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self._name}: {self._value}>"

    def __reduce__(self) -> Any:
        return type(self), (self._value,)


class Ordered(Enum):
    """Base of those that can be compared with their own kind."""

    def _other(self, other: object) -> int:
        if type(other) is not type(self):
            raise TypeError("Expected an enumeration of matching type!")
        return int(other)

    def __lt__(self, other: object) -> bool:
        return self._value < self._other(other)

    def __le__(self, other: object) -> bool:
        return self._value <= self._other(other)

    def __gt__(self, other: object) -> bool:
        return self._value > self._other(other)

    def __ge__(self, other: object) -> bool:
        return self._value >= self._other(other)


def make(name: str, entry: dict[str, Any], extra: dict[str, Any] | None = None) -> type[Enum]:
    """The enum of one recording."""
    base, members = Ordered if entry.get("ordered") else Enum, entry["enum"]
    cls = _EnumType(name.rpartition(".")[2], (base,), {"__module__": "tensorrt", "_members": {}, **(extra or {})})
    for member, value in members.items():
        item = object.__new__(cls)
        item._name, item._value = member, value
        setattr(cls, member, item)
        cls._members[member] = item
    return cls
