"""Extending a loader with a function of one's own."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from layerwise._tool.backends.errors import UsageError

Function = Callable[..., Any]


def extend(extended: Function) -> Callable[[Function], Function]:
    """A decorator: the function it decorates gets what `extended` returns (a tuple as several arguments).

    The decorated function then takes `extended`'s place: same arguments, and the same result unless it returns
    something itself. It may also take all of `extended`'s arguments first. UsageError when it takes neither.
    """

    def decorate(function: Function) -> Function:
        names = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def both(*args: Any, **kwargs: Any) -> Any:
            returned = extended(*args, **kwargs)
            result = _call(function, names, returned, args, kwargs)
            return returned if result is None else result

        return both

    return decorate


def _call(function: Function, names: list[str], returned: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    values = returned if isinstance(returned, tuple) else (returned,)
    if not names and values == (None,):
        return function()
    if len(names) == len(values):
        return function(*values)
    if len(names) == len(values) + len(args) + len(kwargs):
        return function(*args, **kwargs, **dict(zip(names[-len(values) :], values, strict=True)))
    raise UsageError(
        f"{function.__name__} takes {len(names)} parameters, but what it extends returns {len(values)} values"
    )
