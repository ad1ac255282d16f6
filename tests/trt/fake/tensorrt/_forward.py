"""Where LAYERWISE_FAKE_TRT_FORWARD names their folder, each call is made on the real bindings over stubs first."""

from typing import Any

NOTHING = object()


def method(item: Any, owner: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the same method of the real counterpart; NOTHING where there is none."""
    return NOTHING


def static(owner: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the same static method."""
    return NOTHING


def get(item: Any, name: str) -> Any:
    """Read the same property."""
    return NOTHING


def put(item: Any, name: str, value: Any) -> None:
    """Set the same property."""


def attach(result: Any, real: Any) -> Any:
    """Remember what the real bindings returned as the counterpart of what the fake returns."""
    return result
