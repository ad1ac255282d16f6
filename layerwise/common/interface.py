"""Base classes for mappings and lists that take one kind of thing."""

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.text import shown
from layerwise.logger import G_LOGGER

if TYPE_CHECKING:
    from typing_extensions import Self


class _Held:
    """What a mapping and a list share: the thing that they hold, in one attribute."""

    held: str

    def __contains__(self, key: object) -> bool:
        return key in getattr(self, self.held)

    def __getitem__(self, key: Any) -> Any:
        return getattr(self, self.held)[key]

    def __str__(self) -> str:
        return str(getattr(self, self.held))

    def __repr__(self) -> str:
        return repr(getattr(self, self.held))

    def __len__(self) -> int:
        return len(getattr(self, self.held))

    def __iter__(self) -> Iterator[Any]:
        return iter(getattr(self, self.held))

    def __eq__(self, other: Any) -> bool:
        return bool(getattr(self, self.held) == getattr(other, self.held, None))

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> "Self":
        return self._made_with(copy.copy(getattr(self, self.held)))

    def __deepcopy__(self, memo: Any) -> "Self":
        return self._made_with(copy.deepcopy(getattr(self, self.held), memo))

    def _made_with(self, held: Any) -> "Self":
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        setattr(made, self.held, held)
        return made

    def _check(self, value: Any, wanted: Any, what: str) -> None:
        if not isinstance(value, wanted):
            G_LOGGER.critical(
                f"Unsupported {what} type in {type(self).__name__}: {shown(repr(value), 300)} is type "
                f"`{type(value).__name__}` but type `{wanted.__name__}` was expected"
            )


class _Dict(_Held):
    held = "dct"
    key_type: Any
    value_type: Any

    def __init__(self, dct: Any = None) -> None:
        self.dct: OrderedDict[Any, Any] = OrderedDict({} if dct is None else dct)

    def keys(self) -> Any:
        """The keys."""
        return self.dct.keys()

    def values(self) -> Any:
        """The values."""
        return self.dct.values()

    def items(self) -> Any:
        """Keys and values."""
        return self.dct.items()

    def get(self, key: Any, default: Any = None) -> Any:
        """What is under a key, or `default`."""
        return self[key] if key in self else default  # noqa: SIM401 (this is what it would call)

    def update(self, other: Any) -> None:
        """Take the items of another. PolygraphyException, and no change, if one is of the wrong type."""
        for key, value in other.items():
            self._check_item(key, value)
        self.dct.update(other)

    def __setitem__(self, key: Any, val: Any) -> None:
        self._check_item(key, val)
        self.dct[key] = val

    def _check_item(self, key: Any, value: Any) -> None:
        self._check(key, self.key_type, "key")
        self._check(value, self.value_type, "value")


class _List(_Held):
    held = "lst"
    elem_type: Any

    def __init__(self, lst: Any = None) -> None:
        self.lst: list[Any] = [] if lst is None else lst

    def append(self, elem: Any) -> None:
        """Add one. PolygraphyException for one of the wrong type."""
        self._check(elem, self.elem_type, "element")
        self.lst.append(elem)

    def extend(self, elems: Iterable[Any]) -> None:
        """Add several. PolygraphyException, and no change, if one is of the wrong type."""
        elems = list(elems)
        for elem in elems:
            self._check(elem, self.elem_type, "element")
        self.lst.extend(elems)

    def __setitem__(self, index: Any, elem: Any) -> None:
        self._check(elem, self.elem_type, "element")
        self.lst[index] = elem

    def __getitem__(self, index: Any) -> Any:
        return self.lst[index]

    def __iadd__(self, elems: Iterable[Any]) -> "Self":
        self.extend(elems)
        return self


class _Lazily:
    """A type that a function tells, asked when it is used first."""

    def __init__(self, told: Callable[[], type]) -> None:
        self.told = told

    def __get__(self, obj: Any, owner: Any = None) -> type:
        return self.told()


def TypedDict(key_type_func: Callable[[], type], value_type_func: Callable[[], type]) -> Any:
    """A base class for mappings whose keys and values are of these types."""
    return type("Interface", (_Dict,), {"key_type": _Lazily(key_type_func), "value_type": _Lazily(value_type_func)})


def TypedList(elem_type_func: Callable[[], type]) -> Any:
    """A base class for lists whose items are of this type."""
    return type("Interface", (_List,), {"elem_type": _Lazily(elem_type_func)})
