"""Helpers of groups of options."""

from argparse import Namespace
from typing import Any

__all__ = ["get"]


def get(args: Namespace, attr: str) -> Any:
    """What was typed for an option, None if there is none of that name."""
    return getattr(args, attr, None)
