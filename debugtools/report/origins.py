"""The lines of Python that nodes come from, for cases whose rows do not tell: read from the model's file."""

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.records import read_model, read_node
from layerwise._tool.backends.model.wire import WireError
from layerwise._tool.debugtools.report.structure import Case, Part, Section
from layerwise._tool.surgery.origin.graph import has_metadata, record_origins
from layerwise._tool.surgery.origin.origin import Origin, dotted


@dataclass(frozen=True)
class NodeOrigins:
    """Origins of the nodes of a graph by name and by tensor; a name that several nodes have tells nothing."""

    by_node: dict[str, Origin | None]
    by_tensor: dict[str, Origin]

    def of(self, case: Case) -> Origin | None:
        """Where the node of a case comes from."""
        return self.by_tensor.get(case.tensor) or self.by_node.get(case.node)


def with_origins(part: Part) -> Part:
    """The part with module and source of each case that is wrong, or has a remark, where the model tells them."""
    wanted = any(_wants(case) for case in part.cases)
    origins = _read(part.model) if wanted and part.model else None
    if origins is None:
        return part
    return replace(part, sections=[Section(each.title, list(_filled(each.cases, origins))) for each in part.sections])


def _wants(case: Case) -> bool:
    return (case.outcome == "failed" or bool(case.severity)) and bool(case.node or case.tensor) and case.source is None


def _filled(cases: Iterable[Case], origins: NodeOrigins) -> Iterable[Case]:
    for case in cases:
        found = origins.of(case) if _wants(case) else None
        yield case if found is None else replace(case, module=dotted(found.modules), source=found.line)


def _read(path: str) -> NodeOrigins | None:
    """None where the file is no model, or no exporter noted anything in it."""
    try:
        with ModelFile(path, ignore_external_data=True) as file:
            data = file.structure_bytes()
        if not has_metadata(data):
            return None
        graph = read_model(data).graph
        told = record_origins(data, graph.nodes)
        nodes = [read_node(data, *span) for span in graph.nodes]
    except (LayerwiseError, OSError, WireError):
        return None
    by_node: dict[str, Origin | None] = {}
    by_tensor: dict[str, Origin] = {}
    for node, origin in zip(nodes, told, strict=True):
        by_node[node.name] = None if node.name in by_node else origin
        if origin is not None:
            by_tensor.update((name, origin) for name in node.outputs if name)
    return NodeOrigins(by_node, by_tensor)
