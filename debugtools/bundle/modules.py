"""Bundles and PyTorch: a module as the suspect, whose operators are written; and where a node comes from."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.sides.torch import TorchSide
from layerwise._tool.debugtools.locate.feeding import feeds_of
from layerwise._tool.debugtools.locate.origin import lines_of
from layerwise._tool.debugtools.search.judges.original import ends
from layerwise._tool.debugtools.search.judges.protocol import Artifact
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.surgery.origin.names import named_origin
from layerwise._tool.surgery.origin.origin import dotted

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def module_feeds(context: "JobContext", setup: Setup) -> Iterator[tuple[int, Mapping[str, Array]]]:
    """The inputs of each iteration by the names of a module that is the suspect, as `locate` feeds it."""
    suspect, reference = ends(setup)
    for side in setup.sides:
        if isinstance(side, TorchSide):
            side.needs_operators()
    for number, feed in enumerate(feeds_of(context, setup, suspect, reference)):
        suspect.fit(feed, lambda text: None)
        yield number, feed


def write_module(artifact: Artifact, path: Path) -> Path:
    """Write a candidate of a module's operators as an exported program. LayerwiseError where torch does not."""
    from layerwise._tool.backends.torch.parts import save_part

    save_part(artifact.build(), artifact.feeds, path)
    return path


def node_text(subject: Subject, i: int) -> str:
    """A node in one line: position, operator, name, its module and line of Python, and its counterpart."""
    node = subject.describe(i)
    told = [f"#{i} {node.op} {node.node}", *(lines_of([subject.cut.nodes[i]]) or _named_module(subject.cut.nodes[i]))]
    reference = subject.setup.sides[-1]
    if isinstance(reference, ModelSide) and reference.naming.aligned:
        name = next(iter(node.outputs), "")
        own = reference.own(name)
        if name and own in reference.model.cut.maker:
            other = reference.model.cut.nodes[reference.model.cut.maker[own]]
            told.append(f"in the reference {shown(other.op_type, 60)} {shown(own, 120)}")
    return ", ".join(told)


def _named_module(node: onnx.NodeProto) -> list[str]:
    """The module that a node's name tells of, as exporters without metadata write it."""
    origin = named_origin(node.name, list(node.output[:1]))
    return [f"of module {shown(dotted(origin.modules), 120)}"] if origin is not None and origin.modules else []
