"""What loaders share."""

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, cast

from layerwise.func import constantmethod
from layerwise.mod.exporter import functional, snake_case

__all__ = ["BaseLoader"]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
P = ParamSpec("P")
Lazy: TypeAlias = T | Callable[[], T]


class BaseLoader(Generic[T_co]):
    """A callable that makes or loads something when it is called, not before."""

    @constantmethod
    def __call__(self, *args: Any, **kwargs: Any) -> T_co:
        return self.call_impl(*args, **kwargs)

    def call_impl(self, *args: Any, **kwargs: Any) -> T_co:
        """What a call does; for loaders of one's own."""
        raise NotImplementedError("BaseLoader is an abstract class")


def value_of(value: "Lazy[T]") -> T:
    """A value, or what a loader in its place returns."""
    return value() if callable(value) else value


def immediate(loader: Callable[P, BaseLoader[T]]) -> Callable[P, T]:
    """The functional form of a loader class: takes its arguments, then those of a call, and does the work at once."""
    return cast("Callable[P, T]", functional(cast(type, loader), snake_case(loader.__name__)))
