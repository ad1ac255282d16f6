"""What modules return: where exporters note the modules that nodes lie in, it belongs together though values differ."""

from collections.abc import Iterator

from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment
from layerwise._tool.debugtools.align.graph import AlignGraph, AlignNode, normalised
from layerwise._tool.debugtools.align.side_data import SideData

_SURE = frozenset({"hand", "name", "value"})


def module_pairs(found: Alignment, first: SideData, second: SideData) -> Iterator[AlignedPair]:
    """Pairs of the tensors that modules of one path return on both sides, where no values tell what they belong to."""
    sure = [pair for pair in found.pairs if not _SURE.isdisjoint(pair.reasons)]
    taken = {pair.tensor for pair in sure}, {pair.other for pair in sure}
    paired = {(pair.tensor, pair.other) for pair in found.pairs}
    mine, theirs = module_outputs(first.graph), module_outputs(second.graph)
    folded = normalised(first.graph), normalised(second.graph)
    for path, tensor in mine.items():
        other = theirs.get(path)
        if other is None or tensor in taken[0] or other in taken[1] or (tensor, other) in paired:
            continue
        if (tensor in folded[0]) != (other in folded[1]):  # one has the normalisation behind it in its weights
            continue
        one, two = first.prints.get(tensor), second.prints.get(other)
        if one is not None and two is not None and (one.kind, one.size) == (two.kind, two.size):
            taken[0].add(tensor)
            taken[1].add(other)
            yield AlignedPair(tensor, other, "likely", ("metadata",))


def module_outputs(graph: AlignGraph) -> dict[str, str]:
    """The tensor that each module returns, by its path, of those that return one; innermost modules first."""
    readers: dict[str, list[str]] = {name: [""] for name in graph.outputs}
    paths = [module_of(node) for node in graph.nodes]
    for node, path in zip(graph.nodes, paths, strict=True):
        for name in node.inputs:
            readers.setdefault(name, []).append(path)
    given: dict[str, list[str]] = {}
    for node, path in zip(graph.nodes, paths, strict=True):
        for name in filter(None, node.outputs):
            for module in _with_outer(path):
                if any(not _lies_in(reader, module) for reader in readers.get(name, ())):
                    given.setdefault(module, []).append(name)
    single = [(module, names[0]) for module, names in given.items() if len(names) == 1]
    return dict(sorted(single, key=lambda entry: -entry[0].count(".")))


def module_of(node: AlignNode) -> str:
    """The path of the innermost module: exporters note whole paths, or each module's own name."""
    scope = node.scope
    if len(scope) > 1 and not scope[-1].startswith(f"{scope[-2]}."):
        return ".".join(scope)
    return scope[-1] if scope else ""


def _with_outer(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition(".")[0]


def _lies_in(path: str, module: str) -> bool:
    return path == module or path.startswith(f"{module}.")
