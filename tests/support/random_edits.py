"""Edits drawn at random that have a chance to fit a model."""

import random
from collections.abc import Callable

from support.views import graph_at

from layerwise._tool.surgery.edits import Edit, edit_from
from layerwise._tool.surgery.model.structure import Graph, Structure

Draw = Callable[[random.Random, Structure], dict[str, object]]


def draw_edit(rng: random.Random, structure: Structure) -> Edit:
    """Return an edit of a kind, and on targets, drawn by `rng`; it may not fit."""
    return edit_from(rng.choice(_KINDS)(rng, structure))


def _scope(rng: random.Random, structure: Structure) -> tuple[tuple[str, ...], Graph]:
    scopes: list[tuple[str, ...]] = [(), (), ()]
    scopes += [(structure.label(n), a.name) for n in structure.nodes for a in n.attribute if a.HasField("g")]
    scopes += [("function", f"{f.domain}:{f.name}") for f in structure.functions]
    scope = rng.choice(scopes)
    return scope, graph_at(structure, scope)


def _node(rng: random.Random, graph: Graph) -> str:
    return graph.label(rng.choice(graph.nodes)) if graph.nodes else "none"


def _tensor(rng: random.Random, graph: Graph) -> str:
    names = [*graph.lookups.makers, *graph.input_names, *graph.initializers]
    return rng.choice(names) if names else "none"


def _delete(rng: random.Random, structure: Structure) -> dict[str, object]:
    scope, graph = _scope(rng, structure)
    return {"edit": "delete-node", "nodes": [_node(rng, graph)], "scope": scope}


def _insert(rng: random.Random, structure: Structure) -> dict[str, object]:
    scope, graph = _scope(rng, structure)
    operands = [{"values": 2.0}] if (op := rng.choice(["Mul", "Relu", "Add"])) != "Relu" else []
    return {"edit": "insert-node", "tensor": _tensor(rng, graph), "op": op, "operands": operands, "scope": scope}


def _replace(rng: random.Random, structure: Structure) -> dict[str, object]:
    scope, graph = _scope(rng, structure)
    return {
        "edit": "replace-node",
        "node": _node(rng, graph),
        "op": "Elu",
        "attributes": {"alpha": 0.5},
        "scope": scope,
    }


def _set_op(rng: random.Random, structure: Structure) -> dict[str, object]:
    scope, graph = _scope(rng, structure)
    return {"edit": "set-op", "nodes": [_node(rng, graph)], "op": rng.choice(["Tanh", "Abs"]), "scope": scope}


def _attribute(rng: random.Random, structure: Structure) -> dict[str, object]:
    scope, graph = _scope(rng, structure)
    value = rng.choice([1, 0.5, [1, 2], "text", None, {"values": [1.0, 2.0]}])
    return {"edit": "set-attribute", "nodes": [_node(rng, graph)], "name": "alpha", "value": value, "scope": scope}


def _rename_node(rng: random.Random, structure: Structure) -> dict[str, object]:
    scope, graph = _scope(rng, structure)
    return {"edit": "rename-node", "node": _node(rng, graph), "to": f"node_{rng.randrange(50)}", "scope": scope}


def _rename_tensor(rng: random.Random, structure: Structure) -> dict[str, object]:
    scope, graph = _scope(rng, structure)
    return {"edit": "rename-tensor", "tensor": _tensor(rng, graph), "to": f"t_{rng.randrange(50)}", "scope": scope}


def _named(kind: str, key: str = "tensors") -> Draw:
    return lambda rng, structure: {"edit": kind, key: [_tensor(rng, structure)]}


def _plain(kind: str, **fields: object) -> Draw:
    return lambda rng, structure: {"edit": kind, **fields}


def _cut(rng: random.Random, structure: Structure) -> dict[str, object]:
    name = _tensor(rng, structure)
    return {"edit": "set-inputs", "inputs": [{"name": name, "dtype": "float32", "shape": ["n", 32]}]}


_KINDS: list[Draw] = [
    *(_delete, _insert, _replace, _set_op, _attribute, _rename_node, _rename_tensor, _cut),
    *(
        _named("mark-output"),
        _named("unmark-output"),
        _plain("bypass", ops=["Relu"]),
        _plain("bypass", ops=["Identity"]),
    ),
    *(_plain("clean-up"), _plain("toposort"), _plain("deduplicate"), _plain("remove-input")),
    *(_plain("set-batch", batch=3), _plain("freeze-dims", dims={"n": 2}), _plain("debug-outputs", ops=["Add"])),
    _plain("replace-pattern", pattern=["Sigmoid", "Add"], op="Sum"),
    _plain("add-weight", name="extra", value={"values": [1, 2], "dtype": "int64"}),
]
