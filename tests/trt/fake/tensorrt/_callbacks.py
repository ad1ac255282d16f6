"""Calls into a user's objects: as in the real bindings no exception passes through TensorRT; it is told on stderr."""

import sys
from collections.abc import Callable
from typing import Any


def call(name: str, work: Callable[..., Any], *arguments: Any) -> Any:
    """The answer; None where the user's method raised."""
    try:
        return work(*arguments)
    except Exception as error:  # whatever a user's method raises
        sys.stderr.write(f"[ERROR] Exception caught in {name}(): {error}\n")
        return None
