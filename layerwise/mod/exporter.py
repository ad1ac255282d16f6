"""What a module offers: names in its `__all__`, functional forms of loaders, names that are on their way out."""

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from layerwise.logger import G_LOGGER

__all__ = ["deprecate", "export", "export_deprecated_alias", "functional", "snake_case", "warn_deprecated"]

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def export(funcify: bool = False, func_name: str | None = None) -> Callable[[Any], Any]:
    """A decorator that adds a function or class to its module's `__all__`.

    funcify: of a loader class, also its functional form, called `func_name` or by the class's name in snake case.
    """
    module = _module_of(sys._getframe(1))

    def exported(func_or_cls: Any) -> Any:
        _list(module, func_or_cls.__name__)
        if funcify:
            name = func_name or snake_case(func_or_cls.__name__)
            _define(module, name, functional(func_or_cls, name))
        return func_or_cls

    return exported


def snake_case(name: str) -> str:
    """`FooBar` as `foo_bar`."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")


def functional(loader: type, name: str) -> Callable[..., Any]:
    """The functional form of a loader class: takes the arguments of its constructor, then those of a call, and does
    the work at once. Arguments without a default come first, those of the constructor before those of the call.
    """
    made = [p for p in _parameters(loader, "__init__") if p.name != "self"]
    called = [p for p in _parameters(loader, "call_impl") if p.name != "self"]
    needed = [p for p in made + called if p.kind not in _VARIADIC and p.default is p.empty]
    optional = [p for p in made + called if p.kind not in _VARIADIC and p.default is not p.empty]
    variadic = [p for p in made + called if p.kind in _VARIADIC]
    signature = inspect.Signature(
        [p.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in needed + optional] + variadic
    )
    named = {p.name for p in called if p.kind not in _VARIADIC}
    starred = {p.name for p in called if p.kind in _VARIADIC}

    def function(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        own: tuple[list[Any], dict[str, Any]] = ([], {})
        rest: tuple[list[Any], dict[str, Any]] = ([], {})
        for parameter in signature.parameters.values():
            if parameter.name not in given:
                continue
            value, side = given[parameter.name], rest if parameter.name in named | starred else own
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                side[0].extend(value)
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                side[1].update(value)
            else:
                side[1][parameter.name] = value
        return loader(*own[0], **own[1])(*rest[0], **rest[1])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{loader.__name__}` at once. {loader.__doc__ or ''}"
    function.__module__ = loader.__module__
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def warn_deprecated(
    name: str,
    use_instead: str | None,
    remove_in: str,
    module_name: str | None = None,
    always_show_warning: bool = False,
) -> None:
    """Tell that a name goes away: a DeprecationWarning, and on request a line of the log."""
    text = f"{module_name}.{name}" if module_name else name
    text += f" is deprecated and will be removed in Polygraphy {remove_in}."
    text += f" Use {use_instead} instead." if use_instead is not None else ""
    warnings.warn(text, DeprecationWarning, stacklevel=3)
    if always_show_warning:
        G_LOGGER.warning(text)


def deprecate(
    remove_in: str, use_instead: str | None, module_name: str | None = None, name: str | None = None
) -> Callable[[Any], Any]:
    """A decorator for a function, a class or a module that goes away: using it is a DeprecationWarning."""

    def deprecated(obj: Any) -> Any:
        told = name or obj.__name__

        def warn() -> None:
            warn_deprecated(told, use_instead, remove_in, module_name)

        made = _deprecated_form(obj, warn)
        hint = f"Deprecated: Use {use_instead} instead." if use_instead is not None else "Deprecated."
        made.__doc__ = f"{hint}\n\n{obj.__doc__}" if obj.__doc__ else hint
        return made

    return deprecated


def export_deprecated_alias(name: str, remove_in: str, use_instead: str | None = None) -> Callable[[Any], Any]:
    """A decorator that also offers a function or class under an older name."""
    module = _module_of(sys._getframe(1))

    def aliased(obj: Any) -> Any:
        instead = use_instead or obj.__name__
        _define(module, name, deprecate(remove_in, instead, module.__name__, name)(obj))
        return obj

    return aliased


def _deprecated_form(obj: Any, warn: Callable[[], None]) -> Any:
    if inspect.isclass(obj):

        def started(self: Any, *args: Any, **kwargs: Any) -> None:
            warn()
            obj.__init__(self, *args, **kwargs)

        return type(obj.__name__, (obj,), {"__init__": started, "__module__": getattr(obj, "__module__", __name__)})
    if inspect.ismodule(obj):
        return _DeprecatedModule(obj, warn)

    @functools.wraps(obj)
    def called(*args: Any, **kwargs: Any) -> Any:
        warn()
        return obj(*args, **kwargs)

    return called


class _DeprecatedModule:
    def __init__(self, module: ModuleType, warn: Callable[[], None]) -> None:
        vars(self).update(_module=module, _warn=warn)

    def __getattr__(self, name: str) -> Any:
        vars(self)["_warn"]()
        return getattr(vars(self)["_module"], name)


def _module_of(frame: Any) -> ModuleType:
    return sys.modules[frame.f_globals["__name__"]]


def _parameters(cls: type, method: str) -> list[inspect.Parameter]:
    return list(inspect.signature(getattr(cls, method)).parameters.values())


def _list(module: ModuleType, name: str) -> None:
    vars(module).setdefault("__all__", []).append(name)


def _define(module: ModuleType, name: str, value: Any) -> None:
    vars(module)[name] = value
    _list(module, name)
