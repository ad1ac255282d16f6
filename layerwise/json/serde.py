"""Polygraphy's JSON: reading, writing, registering, and files of one iteration each."""

from collections.abc import Callable
from typing import Any, TypeVar

from layerwise._tool.backends.text import shown
from layerwise.json.coding import (
    BaseCustomImpl,
    Decoder,
    Encoder,
    from_json,
    legacy_str_from_type,
    load_json,
    save_json,
    str_from_type,
    to_json,
)
from layerwise.json.iterations import (
    ITERATION_FILE_INDEX_WIDTH,
    IterationWriter,
    is_single_file,
    iterate_from_files,
    iterate_json_list,
    list_iteration_files,
)
from layerwise.logger import G_LOGGER

__all__ = [
    "COMMON_REGISTRATION_SUCCESS", "ITERATION_FILE_INDEX_WIDTH", "NUMPY_REGISTRATION_SUCCESS",
    "TORCH_REGISTRATION_SUCCESS", "BaseCustomImpl", "Decoder", "Encoder", "IterationWriter", "add_json_methods",
    "from_json", "is_single_file", "iterate_from_files", "iterate_json_list", "legacy_str_from_type",
    "list_iteration_files", "load_json", "save_json", "str_from_type", "to_json", "try_register_common_json",
]  # fmt: skip

NUMPY_REGISTRATION_SUCCESS = TORCH_REGISTRATION_SUCCESS = COMMON_REGISTRATION_SUCCESS = True
"""Kept for scripts that read them: arrays, tensors and the classes of results are always known."""
Cls = TypeVar("Cls", bound=type)


def try_register_common_json(func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that changes nothing: arrays, tensors and results are registered from the start."""
    return func


def add_json_methods(description: str | None = None) -> Callable[[Cls], Cls]:
    """A class decorator: `to_json` and `save`, and the static `from_json` and `load`, which raise a PolygraphyException
    where the JSON is of another class. description: what the log calls a file of it.
    """

    def decorate(cls: Cls) -> Cls:
        def checked(found: Any) -> Any:
            if not isinstance(found, cls):
                G_LOGGER.critical(
                    f"Provided JSON cannot be decoded into a {cls.__name__}.\nNote: JSON was decoded into a "
                    f"{type(found)}: {shown(str(found), 300)}"
                )
            return found

        def from_json_method(src: str) -> Any:
            """Read JSON text."""
            return checked(from_json(src))

        def load_method(src: Any) -> Any:
            """Read a file, or an object that is one."""
            return checked(load_json(src, description=description))

        def to_json_method(self: Any) -> str:
            """As JSON text."""
            return to_json(self)

        def save_method(self: Any, dest: Any) -> None:
            """Write a file, or to an object that is one."""
            save_json(self, dest, description=description)

        own = {"to_json": to_json_method, "save": save_method, "from_json": staticmethod(from_json_method),
               "load": staticmethod(load_method)}  # fmt: skip
        for name, method in own.items():
            setattr(cls, name, method)
        return cls

    return decorate
