"""What is known of where a node comes from."""

from typing import Literal

from msgspec import Struct

Told = Literal["metadata", "name", "neighbours"]
Path = tuple[str, ...]
TOP = "(top)"
"""Stands for the path of a model's outermost module, which has no name."""


class SourceLine(Struct, frozen=True):
    """A line of a Python file, as the exporter saw it; line from 1. Untrusted: the file need not exist."""

    file: str
    line: int
    function: str


class Origin(Struct, frozen=True):
    """Where a node comes from. All text is the model's: escape it before it is shown.

    modules: the module that it lies in, as a path of names, each relative to the one before; () is the outermost.
    classes: of the outermost module and of each of `modules`; () where unknown.
    source: the node's name before the export (of an fx graph), "" where unknown.
    line: the innermost line outside PyTorch, or the innermost one at all; None where unknown.
    told: by the exporter's metadata, by the node's name, or by the nodes around it (the module only).
    """

    modules: Path
    classes: Path = ()
    source: str = ""
    line: SourceLine | None = None
    told: Told = "metadata"


def dotted(modules: Path) -> str:
    """A path as PyTorch writes it: `encoder.layer.0`; the outermost module has a name of ours."""
    return ".".join(modules) or TOP
