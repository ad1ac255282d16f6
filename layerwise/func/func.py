"""Extending a loader with a function of one's own, and methods that must not change their object."""

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any

from layerwise import config
from layerwise._tool.backends.errors import UsageError
from layerwise.logger import G_LOGGER

__all__ = ["constantmethod", "extend", "make_iterable"]

Function = Callable[..., Any]


def make_iterable(obj: Any) -> tuple[Any, ...]:
    """A tuple as it is, anything else as a tuple of one."""
    return obj if type(obj) is tuple else (obj,)


def extend(extend_func: Function) -> Callable[[Function], Function]:
    """A decorator: the function it decorates gets what `extend_func` returns (a tuple as several arguments).

    The decorated function then takes `extend_func`'s place: same arguments, and the same result unless it returns
    something itself. It may also take all of `extend_func`'s arguments first. UsageError when it takes neither.
    """

    def decorate(function: Function) -> Function:
        names = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def both(*args: Any, **kwargs: Any) -> Any:
            returned = extend_func(*args, **kwargs)
            result = _call(function, names, returned, args, kwargs)
            return returned if result is None else result

        return both

    return decorate


def _call(function: Function, names: list[str], returned: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    values = make_iterable(returned)
    if not names and values == (None,):
        return function()
    if len(names) == len(values):
        return function(*values)
    if len(names) == len(values) + len(args) + len(kwargs):
        return function(*args, **kwargs, **dict(zip(names[-len(values) :], values, strict=True)))
    raise UsageError(
        f"{function.__name__} takes {len(names)} parameters, but what it extends returns {len(values)} values"
    )


def constantmethod(func: Function) -> Function:
    """A decorator for methods that must not change their object.

    Without config.INTERNAL_CORRECTNESS_CHECKS it changes nothing; with them, one that does is a
    PolygraphyInternalException.
    """
    if not config.INTERNAL_CORRECTNESS_CHECKS:
        return func

    @functools.wraps(func)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = copy.copy(vars(self))
        try:
            return func(self, *args, **kwargs)
        finally:
            if vars(self) != before:
                G_LOGGER.internal_error(f"{self} was mutated in a constant method! It was: {before}, is: {vars(self)}")

    return checked
