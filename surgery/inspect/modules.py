"""The modules that a graph's nodes come from, for `inspect model --show modules`."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import to_builtins

from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.origin.origin import TOP, Origin
from layerwise._tool.surgery.origin.tree import InModule, module_counts, told_counts

_TAB = " " * 4


def module_lines(origins: Sequence[Origin | None], pattern: str = "") -> Iterator[str]:
    """Yield the tree of modules, each with its class and the number of nodes in it; how many nodes have a module.

    pattern: only modules that it names.
    """
    inside = InModule(pattern)
    counts = module_counts(origin for origin in origins if not pattern or inside(origin))
    yield f"---- {len(counts)} Module(s) ----"
    for module in counts:
        name = shown(module.path[-1], 200) if module.path else TOP
        kind = f" [{shown(module.kind.rpartition('.')[2], 100)}]" if module.kind else ""
        yield f"{_TAB * len(module.path)}{name}{kind} | {module.nodes} node{'s' * (module.nodes != 1)}"
    told = told_counts(origins)
    yield ""
    yield (
        f"{len(origins) - told['unknown']} of {len(origins)} nodes have a module: {told['metadata']} by the exporter's "
        f"metadata, {told['name']} by their names, {told['neighbours']} by the nodes around them"
    )
    yield ""


def modules_json(origins: Sequence[Origin | None], pattern: str = "") -> dict[str, Any]:
    """Return the same as values."""
    inside = InModule(pattern)
    counts = module_counts(origin for origin in origins if not pattern or inside(origin))
    return {
        "modules": [{"module": m.path, "class": m.kind or None, "nodes": m.nodes, "own": m.own} for m in counts],
        "modules_by": told_counts(origins),
    }


def origin_json(origin: Origin | None) -> dict[str, Any]:
    """Return what is known of where a node comes from; nothing where nothing is."""
    if origin is None:
        return {}
    found: dict[str, Any] = {"module": origin.modules, "module_by": origin.told}
    if origin.classes:
        found["classes"] = origin.classes
    if origin.source:
        found["source_node"] = origin.source
    return found | ({} if origin.line is None else {"source": to_builtins(origin.line)})
