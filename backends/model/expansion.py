"""Counts the nodes of a model with its function calls expanded, without expanding them.

Thirty functions that each call the next one twice are a kilobyte, and a billion nodes. Field numbers: onnx.proto,
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.wire import BYTES, MAX_DEPTH, Field, Source, WireError, fields
from layerwise._tool.backends.text import shown

MOST_NODES = 1_000_000
MOST_DEEP = 100
_GRAPH, _FUNCTION = 7, 25  # of a model
_NODE_OF_GRAPH, _NODE_OF_FUNCTION, _NAME, _DOMAIN = 1, 7, 1, 10
_OP, _ATTRIBUTE, _OP_DOMAIN, _BODIES = 4, 5, 7, (6, 11)

Name = tuple[bytes, bytes]
Calls = Mapping[Name, Counter[Name]]


def check_functions(model: bytes) -> None:
    """Raise LayerwiseError for a serialised ModelProto with recursive functions, calls more than MOST_DEEP deep, or
    more than MOST_NODES nodes when expanded. Damaged bytes pass.
    """
    source = Source(model)
    try:
        outer = list(_parts(source, 0, source.size))
        functions = [part for part in outer if part.number == _FUNCTION]
        if functions:
            calls = {_name(source, part): _calls(source, part, _NODE_OF_FUNCTION) for part in functions}
            calls[_MAIN] = sum((_calls(source, p, _NODE_OF_GRAPH) for p in outer if p.number == _GRAPH), Counter())
            _check(calls)
    except WireError:
        return


_MAIN = (b"", b"")


def _check(calls: Calls) -> None:
    sizes: dict[Name, int] = {}
    path: list[tuple[Name, Iterator[Name]]] = [(_MAIN, iter(calls[_MAIN]))]
    while path:
        name, inner = path[-1]
        called = next((one for one in inner if one in calls and one not in sizes), None)
        if called is None:
            sizes[name] = sum(count * (1 + sizes.get(one, 0)) for one, count in calls[name].items())
            path.pop()
            if sizes[name] > MOST_NODES:
                raise LayerwiseError(f"its functions stand for more than {MOST_NODES:,} nodes: they are not expanded")
        elif any(called == above for above, _ in path):
            raise LayerwiseError(f"function {shown(called[1].decode('utf-8', 'replace'), 120)!r} calls itself")
        elif len(path) > MOST_DEEP:
            raise LayerwiseError(f"its functions call each other more than {MOST_DEEP} deep")
        else:
            path.append((called, iter(calls[called])))


def _parts(source: Source, start: int, end: int) -> Iterator[Field]:
    return (part for part in fields(source, start, end) if part.wire == BYTES)


def _name(source: Source, function: Field) -> Name:
    found = {part.number: source.read(part.start, part.end) for part in _parts(source, function.start, function.end)
             if part.number in (_NAME, _DOMAIN)}  # fmt: skip
    return found.get(_DOMAIN, b""), found.get(_NAME, b"")


def _calls(source: Source, graph: Field, node: int, depth: int = 0) -> Counter[Name]:
    """Return how often each operator occurs in a graph or function, including the bodies of its nodes."""
    found: Counter[Name] = Counter()
    if depth > MAX_DEPTH:
        return found
    for part in _parts(source, graph.start, graph.end):
        if part.number == node:
            found.update(_of_node(source, part, depth))
    return found


def _of_node(source: Source, node: Field, depth: int) -> Counter[Name]:
    op, domain, bodies = b"", b"", Counter[Name]()
    for part in _parts(source, node.start, node.end):
        if part.number == _OP:
            op = source.read(part.start, part.end)
        elif part.number == _OP_DOMAIN:
            domain = source.read(part.start, part.end)
        elif part.number == _ATTRIBUTE:
            for body in _parts(source, part.start, part.end):
                if body.number in _BODIES:
                    bodies += _calls(source, body, _NODE_OF_GRAPH, depth + 1)
    bodies[domain, op] += 1
    return bodies
