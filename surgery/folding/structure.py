"""Constant folding: what does not depend on the inputs is computed once and stored.

The parts are computed by onnxruntime (CPU, no optimisations): call this in a process
that may crash. Differences from Polygraphy's `sanitize --fold-constants` (0.53): tensors are not enlarged by default
(`FoldOptions.threshold`), random draws stay random, custom operators do not stop the rest, Shape with start and end is
folded correctly, partially known shapes are used, and floating-point arithmetic is not rounded away.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import onnx
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.surgery.cut.randomness import Randomness
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.folding.constants import constants_as_weights, numbers, weights_as_constants
from layerwise._tool.surgery.folding.lengths import shape_values, without_casts
from layerwise._tool.surgery.folding.options import FoldOptions, totals
from layerwise._tool.surgery.folding.region import ConstantRegion, Evaluator, within
from layerwise._tool.surgery.model.structure import Graph, Structure, changed
from layerwise._tool.surgery.rewrite.rewiring import making, reading
from layerwise._tool.surgery.rewrite.tidy import cleaned, cleaned_model, count_nodes, in_order, map_bodies, unmade
from layerwise._tool.surgery.types.shapes import with_shapes, without_weights

_KNOWN_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
_INPUTS_HOLD_NO_WEIGHTS = 4  # from this IR version on a weight that is also an input may be overridden
Declared = tuple[int, tuple[int | None, ...] | None]
Say = Callable[[str, str], None]
"""Takes a level ("start", "finish", "warning") and a text."""


def fold_constants(
    model: Structure, options: FoldOptions | None = None, say: Say = lambda level, text: None
) -> Structure:
    """Return the model with constants folded, sorted, without unused parts. Weights stay external.

    LayerwiseError if the graph has a cycle. What cannot be computed stays, with a warning.
    """
    options = options or FoldOptions()
    number, before, after = 0, count_nodes(model), -1
    model = in_order(model)
    while before != after and (options.passes is None or number < options.passes):
        number, before = number + 1, count_nodes(model)
        say("start", f"Folding Constants | Pass {number}")
        model = _Pass(model, options, say).result()
        if options.shapes and options.infer:
            model = with_shapes(model)[0]
        after = count_nodes(model)
        say("finish", totals(before, after))
    return model


class _Pass:
    """One pass over the main graph, bodies and functions."""

    def __init__(self, model: Structure, options: FoldOptions, say: Say) -> None:
        self.model, self.options, self.say = model, options, say
        self._random = Randomness(GraphCut(without_weights(model).proto()))
        self._functions = {(function.domain, function.name) for function in model.functions}

    def result(self) -> Structure:
        model, defaults = _hidden(self.model)
        main = self._graph(model)
        assert isinstance(main, Structure)
        functions = tuple(self._function(function) for function in main.functions)
        return cleaned_model(main.with_(initializers={**defaults, **main.initializers}, functions=functions))

    def _function(self, function: onnx.FunctionProto) -> onnx.FunctionProto:
        graph = self._graph(Graph.of_function(function))
        return cleaned(weights_as_constants(graph)).function_proto()

    def _graph(self, graph: Graph) -> Graph:
        graph = constants_as_weights(graph)
        types = _types(graph)
        if self.options.shapes:
            folder = self.model.folder
            graph = without_casts(graph, {name: kind for name, (kind, _) in types.items()}, folder)
            shapes = {name: shape for name, (_, shape) in types.items() if shape is not None}
            graph = _replaced(graph, shape_values(graph, shapes, folder))
        graph = self._computed(graph, types)
        graph = map_bodies(graph, self._graph)
        return cleaned(flattened(graph, self.model.folder))

    def _computed(self, graph: Graph, types: Mapping[str, Declared]) -> Graph:
        known = {name: (kind, shape) for name, (kind, shape) in types.items() if shape is not None}
        recursive = self.options.partitioning == "recursive"
        region = ConstantRegion(graph, known, self._can, within(self.options.threshold), recursive)
        if not region.nodes:
            return graph
        evaluator = Evaluator(self.model, graph)
        values = region.values(evaluator.values)
        for error in evaluator.errors[:5]:
            self.say("warning", f"Not folded, onnxruntime cannot compute it: {error}")
        return _replaced(graph, {name: numpy_helper.from_array(array, name) for name, array in values.items()})

    def _can(self, node: onnx.NodeProto) -> bool:
        """Return whether onnxruntime may compute the node once for all runs."""
        if node.op_type == "Constant" or self._random.draws(node):
            return False
        if any(attribute.ref_attr_name for attribute in node.attribute):
            return False
        return node.domain in _KNOWN_DOMAINS or (node.domain, node.op_type) in self._functions


def _hidden(model: Structure) -> tuple[Structure, dict[str, TensorProto]]:
    """Return the model without weights that are defaults of inputs, and these. Before IR 4 every weight is listed as an
    input and none may be overridden: such a model is converted to IR 4, with weights that are not inputs.
    """
    listed = {value.name for value in model.inputs} & model.initializers.keys()
    if model.ir_version < _INPUTS_HOLD_NO_WEIGHTS:
        inputs = tuple(value for value in model.inputs if value.name not in listed)
        return model.with_(inputs=inputs, ir_version=_INPUTS_HOLD_NO_WEIGHTS), {}
    rest = {name: tensor for name, tensor in model.initializers.items() if name not in listed}
    return model.with_(initializers=rest), {name: model.initializers[name] for name in listed}


def _replaced(graph: Graph, weights: Mapping[str, TensorProto]) -> Graph:
    """Return the graph with tensors as weights; nodes without remaining outputs are removed."""
    if not weights:
        return graph
    return unmade(graph, weights).with_(initializers={**graph.initializers, **weights})


def _types(graph: Graph) -> dict[str, Declared]:
    """Return element type and lengths of the tensors that a graph can read, as far as declared."""
    found = _types(graph.outer) if graph.outer is not None else {}
    for value in (*graph.values.values(), *graph.outputs, *graph.inputs):
        tensor = value.type.tensor_type
        if not value.type.HasField("tensor_type"):
            continue
        dims = [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in tensor.shape.dim]
        found[value.name] = (tensor.elem_type, tuple(dims) if tensor.HasField("shape") else None)
    for name, weight in graph.initializers.items():
        found[name] = (weight.data_type, tuple(weight.dims))
    return found


def flattened(graph: Graph, folder: Path | None) -> Graph:
    """Return the graph with all Ifs with constant conditions replaced by their branches."""
    while True:
        decided = next((node for node in graph.nodes if _branch(graph, node, folder) is not None), None)
        if decided is None:
            return graph
        branch = _branch(graph, decided, folder)
        assert branch is not None
        graph = _inlined(graph, decided, branch)


def _branch(graph: Graph, node: onnx.NodeProto, folder: Path | None) -> onnx.GraphProto | None:
    if node.op_type != "If" or node.domain not in ("", "ai.onnx"):
        return None
    condition = numbers(graph, node.input[0], folder)
    if condition is None or len(condition) != 1:
        return None
    wanted = "then_branch" if condition[0] else "else_branch"
    return next((attribute.g for attribute in node.attribute if attribute.name == wanted), None)


def _inlined(graph: Graph, node: onnx.NodeProto, branch: onnx.GraphProto) -> Graph:
    body = Graph.of(branch, graph)
    names = _new_names(graph, body, node)
    outputs = {value.name: node.output[i] for i, value in enumerate(branch.output) if i < len(node.output)}
    weights = {names[name]: changed(tensor, name=names[name]) for name, tensor in body.initializers.items()}
    nodes = [making(reading(inner, names), names) for inner in body.nodes]
    for i, value in enumerate(branch.output):
        target = node.output[i] if i < len(node.output) else ""
        if target and names.get(value.name) != target:  # one tensor for two outputs, or one from outside the branch
            nodes.append(helper.make_node("Identity", [names.get(value.name, value.name)], [target]))
    values = {**graph.values}
    for name, value in body.values.items():
        if name in names and name not in outputs:
            values[names[name]] = changed(value, name=names[name])
    flat = graph.replaced({id(node): nodes})
    return flat.with_(initializers={**graph.initializers, **weights}, values=values)


def _new_names(graph: Graph, body: Graph, node: onnx.NodeProto) -> dict[str, str]:
    """Return names of the branch's tensors outside it: the If's outputs by their names, the others unchanged if
    unused.
    """
    names: dict[str, str] = {}
    for i, value in enumerate(body.outputs):
        if i < len(node.output) and node.output[i] and body.defines(value.name):
            names.setdefault(value.name, node.output[i])
    others = graph.replaced({id(node): []})
    local = [name for inner in body.nodes for name in inner.output if name]
    for name in dict.fromkeys([*local, *body.initializers]):
        if name not in names:
            names[name] = others.fresh(name, [*names.values(), *node.output])
    return names
