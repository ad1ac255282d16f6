"""Networks from ONNX models, or from a user's script."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.scripts import load_function, script_errors
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.capabilities import able, member
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.backends.trt.options import NetworkOptions

_NAMED = 10
_UINT8 = "ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA"  # not with the native form of InstanceNormalization


@dataclass
class Network:
    """A network and what must outlive it: its builder, the parser that holds its weights, its logger."""

    builder: Any
    network: Any
    parser: Any
    logger: Any


def creation_flags(trt: Any, *, strongly_typed: bool) -> int:
    """Return the mask for `create_network`, from names: the numbers differ between 10 and 11."""
    flags = trt.NetworkDefinitionCreationFlag
    wanted = ["STRONGLY_TYPED"] if strongly_typed and able(trt, "typed_by_flag") else []
    return sum(1 << int(getattr(flags, name)) for name in wanted)


def parse_onnx(
    trt: Any, logger: Any, messages: Messages, model: Loadable, options: NetworkOptions, *, strongly_typed: bool
) -> Network:
    """Parse an ONNX model to a network. LayerwiseError names node, operator and reason if the parser rejects it."""
    made = with_parser(trt, logger, options, strongly_typed=strongly_typed)
    if not made.parser.parse(model.read(), path=model.beside()):
        raise LayerwiseError(f"TensorRT's parser refuses the model: {parser_reasons(made.parser, messages)}")
    return made


def with_parser(trt: Any, logger: Any, options: NetworkOptions, *, strongly_typed: bool) -> Network:
    """Return an empty network with a parser that has the options' flags. UsageError for an invalid one."""
    builder = trt.Builder(logger)
    network = builder.create_network(creation_flags(trt, strongly_typed=strongly_typed))
    parser = trt.OnnxParser(network, logger)
    for name in options.onnx_flags:
        parser.set_flag(member(trt.OnnxParserFlag, name, "--onnx-flags"))
    if options.plugin_instancenorm or _UINT8 in options.onnx_flags:
        parser.clear_flag(trt.OnnxParserFlag.NATIVE_INSTANCENORM)
    return Network(builder, network, parser, logger)


def parser_reasons(parser: Any, messages: Messages) -> str:
    """Return parser errors as `node NAME (OP): reason`, the first ten of them."""
    found = [_told(parser.get_error(i)) for i in range(parser.num_errors)]
    more = [f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
    return "\n".join([*found[:_NAMED], *more]) or messages.reason("it says no more")


def _told(error: Any) -> str:
    reason = shown(error.desc(), 400)
    if error.node() < 0 and not error.node_name():
        return reason
    stack = error.local_function_stack()
    within = f" in {shown(' > '.join(stack), 200)}" if stack else ""
    name = shown(error.node_name(), 120) or f"number {error.node()}"
    return f"node {name} ({shown(error.node_operator(), 60)}){within}: {reason}"


def script_network(trt: Any, logger: Any, script: str, name: str, *, strongly_typed: bool) -> Network:
    """Return a network made by a user's function. It returns (builder, network), (builder, network, parser), or, if it
    takes two arguments, fills the network it is given.

    UsageError for other return values; LayerwiseError naming the line where it fails.
    """
    import inspect

    path = Path(script).absolute()
    function = load_function(path, name)
    given = inspect.signature(function, follow_wrapped=False).parameters.values()  # extended loaders take *args
    takes = sum(parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) for parameter in given)
    builder = trt.Builder(logger) if takes else None
    network = builder.create_network(creation_flags(trt, strongly_typed=strongly_typed)) if builder else None
    with script_errors(path, f"{name}()"):
        made = function(*[builder, network][:takes]) if takes else function()
    if made is None and takes:
        made = (builder, network)
    if not isinstance(made, tuple) or len(made) not in (2, 3) or not hasattr(made[1], "num_layers"):
        raise UsageError(
            f"{shown(name, 80)} in {shown(script)} must return (builder, network) or (builder, network, parser)"
        )
    return Network(made[0], made[1], made[2] if len(made) == 3 else None, logger)


def tensors_of(network: Any) -> dict[str, Any]:
    """Return every tensor that a layer of a network makes, by name, in layer order."""
    found = {}
    for at in range(network.num_layers):
        layer = network.get_layer(at)
        for slot in range(layer.num_outputs):
            tensor = layer.get_output(slot)
            if tensor is not None:
                found[tensor.name] = tensor
    return found


def made_by(trt: Any, network: Any, types: Sequence[str]) -> list[str]:
    """Return the tensors that layers of these types make. UsageError for an invalid type, or one without layers."""
    wanted = {member(trt.LayerType, name, "--trt-outputs-by-type"): name for name in types}
    layers = [network.get_layer(at) for at in range(network.num_layers)]
    for kind, name in wanted.items():
        if all(layer.type != kind for layer in layers):
            there = ", ".join(sorted({layer.type.name for layer in layers})[:_NAMED])
            raise UsageError(f"--trt-outputs-by-type {shown(name, 60)}: no layer is of that type; there are {there}")
    return [layer.get_output(at).name for layer in layers if layer.type in wanted for at in range(layer.num_outputs)]


def mark_outputs(network: Any, names: Sequence[str], exclude: Sequence[str], besides: Sequence[str] = ()) -> None:
    """Make `names` and `besides` the network's outputs, without `exclude`; if neither is given, keep its own.

    Names and exclusions may be wildcards, which shape tensors are not meant by. UsageError if one fits no tensor.
    """
    if not names and not exclude and not besides:
        return
    tensors = tensors_of(network)
    outputs = {network.get_output(i).name: network.get_output(i) for i in range(network.num_outputs)}
    kept = [] if besides else list(outputs)
    wanted = [found for name in names for found in _meant(name, tensors, outputs)] if names else kept
    left_out = {found for name in exclude for found in _meant(name, tensors, outputs)}
    kept = [name for name in dict.fromkeys([*wanted, *besides]) if name not in left_out]
    if not kept:
        raise UsageError("no output is left to mark")
    if kept == list(outputs):
        return
    for tensor in outputs.values():  # all, so that they come in the order that was asked for
        network.unmark_output(tensor)
    for name in kept:
        network.mark_output(outputs[name] if name in outputs else tensors[name])


def _meant(name: str, tensors: dict[str, Any], outputs: dict[str, Any]) -> list[str]:
    """Return the tensors that a name or a wildcard stands for, in order."""
    known = {**tensors, **outputs}
    found = [
        each
        for each in known
        if each == name or (fnmatchcase(each, name) and (each in outputs or not known[each].is_shape_tensor))
    ]
    if not found:
        raise UsageError(f"the network has no tensor '{shown(name, 120)}' to mark; it has {_some(tensors)}")
    return found


def _some(tensors: dict[str, Any]) -> str:
    told = ", ".join(shown(name, 60) for name in list(tensors)[:_NAMED])
    return f"{told} and {len(tensors) - _NAMED} more" if len(tensors) > _NAMED else told or "none"
