"""Names, sequences, mappings and attributes."""

import functools
import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatch, fnmatchcase
from types import TracebackType
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise.logger import G_LOGGER

_PACKAGE = __name__.partition(".")[0]


def is_nan(obj: Any) -> bool:
    """Whether it is a float that is not a number."""
    return isinstance(obj, float) and math.isnan(obj)


def is_inf(obj: Any) -> bool:
    """Whether it is an infinite float."""
    return isinstance(obj, float) and math.isinf(obj)


def default(value: Any, default: Any) -> Any:
    """`value`, or `default` in place of None."""
    return default if value is None else value


def is_sequence(obj: Any) -> bool:
    """Whether it can be iterated over and is no dict, set or text."""
    return hasattr(obj, "__iter__") and not isinstance(obj, dict | set | str)


def unpack_args(args: Any, num: int) -> Any:
    """The first `num` of a tuple, filled up with None; anything else counts as a tuple of one."""
    values = args if is_sequence(args) else (args,)
    return (values + (None,) * (num - len(values)))[:num]


def unique_list(sequence: Iterable[Any]) -> list[Any]:
    """The items without repetitions, in order."""
    return list(dict.fromkeys(sequence))


def invert_dict(dct: Mapping[Any, Any]) -> dict[Any, Any]:
    """Values -> keys."""
    return {value: key for key, value in dct.items()}


def value_or_from_dict(obj: Any, key: str, default: Any = None) -> Any:
    """What `obj` has under `key` or else under "", if it is a dict; anything else holds for every key."""
    if not isinstance(obj, dict):
        return obj
    return obj[key] if key in obj else obj.get("", default)


def find_str_in_iterable(name: str, seq: Collection[str], index: int | None = None) -> str | None:
    """The name itself, or else the first that contains it or that it contains, whatever the case, or else the one at
    `index`; None if there is none.
    """
    if name in seq:
        return name
    low = name.lower()
    alike = next((each for each in seq if low in each.lower() or each.lower() in low), None)
    if alike is None and index is not None and index < len(seq):
        return list(seq)[index]
    return alike


def check_sequence_contains(
    sequence: Iterable[Any],
    items: Iterable[Any],
    name: str | None = None,
    items_name: str | None = None,
    log_func: Callable[[str], Any] | None = None,
    check_missing: bool | None = None,
    check_extra: bool | None = None,
) -> tuple[set[Any], set[Any]]:
    """Those of `items` that `sequence` lacks, and those that it has besides.

    Either is told to `log_func`, which by default raises a PolygraphyException, unless check_missing or check_extra is
    False.
    """
    there, wanted = set(sequence), set(items)
    tell, what = log_func or G_LOGGER.critical, items_name or "items"
    place, missing, extra = name or "the sequence", wanted - there, there - wanted
    note = f"\nNote: {what} requested were: {wanted}, but all {what} are: {there}"
    if missing and check_missing is not False:
        tell(f"The following {what} were not found in {place}: {missing}.{note}")
    if extra and check_extra is not False:
        tell(f"Extra {what} in {place}: {extra}.{note}")
    return missing, extra


def contains_wildcard(target: str) -> bool:
    """Whether a name has characters of glob patterns."""
    return any(char in target for char in "*?[]!")


def match_keys(keys: Sequence[str], targets: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Target -> the pattern among `keys` that it matches (the last of several); and the keys that match none."""
    found = {target: key for key in keys for target in targets if fnmatch(target, key)}
    used = {key for key in keys if any(fnmatch(target, key) for target in targets)}
    return found, [key for key in keys if key not in used]


def invoke_if_callable(func: Any, *args: Any, **kwargs: Any) -> tuple[Any, bool]:
    """What a callable returns, and True; anything else as it is, and False."""
    return (func(*args, **kwargs), True) if callable(func) else (func, False)


def check_called_by(expected_caller_name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: a warning when a script calls the function from anywhere else than a function of that name."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def checked(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            ours = str(caller.f_globals.get("__name__", "")).partition(".")[0] == _PACKAGE
            if not ours and caller.f_code.co_name != expected_caller_name:
                G_LOGGER.warning(
                    f"Calling '{func.__qualname__}()' directly is not recommended. Please use "
                    f"'{expected_caller_name}()' instead."
                )
            return func(*args, **kwargs)

        return checked

    return decorate


class TempAttrChange:
    """Attributes of an object have other values inside the `with`; None leaves one as it is."""

    def __init__(self, arg_group: Any, attr_values: Mapping[str, Any]) -> None:
        self.arg_group = arg_group
        self.old_values: dict[str, Any] = {}
        self.new_values = attr_values

    def __enter__(self) -> None:
        for name, value in self.new_values.items():
            if value is not None:
                self.old_values[name] = getattr(self.arg_group, name)
                setattr(self.arg_group, name, value)

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for name, value in self.old_values.items():
            setattr(self.arg_group, name, value)


def getattr_nested(obj: Any, attr: str) -> Any:
    """An attribute of an attribute: "a.b"."""
    return functools.reduce(getattr, attr.split("."), obj)


def try_getattr(obj: Any, attr: str, default: Any = None) -> Any:
    """An attribute, or `default` where there is none."""
    return getattr(obj, attr, default)


def expand_wildcards(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Names, of which patterns are those that match them."""
    found: list[str] = []
    for name in names:
        if name in known or not contains_wildcard(name.replace("!", "")):
            found.append(name)
            continue
        hits = [each for each in known if fnmatchcase(each, name)]
        if not hits:
            G_LOGGER.warning(f"No tensors matched wildcard pattern: '{shown(name, 120)}'")
        found += hits
    return unique_list(found)
