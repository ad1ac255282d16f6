"""OnnxParser: the ONNX graph stays as it is; every node becomes one layer, initializers stay inside the network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from onnx import helper

from . import _faults
from ._arguments import CLASSES
from ._classes import behaves, new
from ._import import Importer
from ._plugins import as_functions
from ._values import say

_DOMAINS = ("", "ai.onnx", "trt.plugins")


class Bad(NamedTuple):
    """A node that the parser cannot import, its index in its graph or function, and the calls that lead to it."""

    at: int
    node: onnx.NodeProto
    reason: str
    stack: tuple[str, ...] = ()


def readable(model: onnx.ModelProto) -> list[Bad]:
    """The nodes that the parser cannot import, those of functions where they are called."""
    functions = {(f.domain, f.name): f for f in model.functions}
    plugins = {creator.name for creator in _faults.creators()}

    def walk(nodes: Any, stack: tuple[str, ...]) -> Iterator[Bad]:
        for at, node in enumerate(nodes):
            called = functions.get((node.domain, node.op_type))
            if reason := _faults.unsupported(node):
                yield Bad(at, node, reason, stack)
            elif called is not None:
                yield from walk(called.node, (*stack, f"{node.name} ({node.op_type})"))
            elif not known(node) and node.op_type not in plugins:
                reason = 'creator && "Plugin not found, are the plugin name, version, and namespace correct?"'
                yield Bad(at, node, reason, stack)

    return list(walk(model.graph.node, ()))


def known(node: onnx.NodeProto) -> bool:
    """Whether it is an operator of ONNX itself."""
    return node.domain in _DOMAINS and onnx.defs.has(node.op_type)


@behaves("ParserError")
class _ParserError:
    _code: Any

    def code(self) -> Any:
        return self._code

    def desc(self) -> str:
        return self._desc

    def file(self) -> str:
        return "ModelImporter.cpp"

    def func(self) -> str:
        return "parseNode"

    def line(self) -> int:
        return 836

    def node(self) -> int:
        return self._node

    def node_name(self) -> str:
        return self._node_name

    def node_operator(self) -> str:
        return self._node_operator

    def local_function_stack(self) -> list[str]:
        return list(self._stack)

    def local_function_stack_size(self) -> int:
        return len(self._stack)


def parser_error(code: str, desc: str, bad: Bad | None = None) -> Any:
    """A ParserError."""
    return new(
        "ParserError", _code=getattr(CLASSES["ErrorCode"], code), _desc=desc, _node=bad.at if bad else -1,
        _node_name=bad.node.name if bad else "", _node_operator=bad.node.op_type if bad else "",
        _stack=bad.stack if bad else (),
    )  # fmt: skip


def load(data: Any, path: str | None) -> onnx.ModelProto:
    """The model of these bytes; external data is looked for beside `path`."""
    model = onnx.ModelProto()
    model.ParseFromString(bytes(data))
    if path:
        for tensor in onnx.external_data_helper._get_all_tensors(model):
            if onnx.external_data_helper.uses_external_data(tensor):
                _read(tensor, Path(path).parent)
    return model


def _read(tensor: onnx.TensorProto, folder: Path) -> None:
    """Plainly, as the parser does: onnx itself refuses files that have a second name."""
    info = onnx.external_data_helper.ExternalDataInfo(tensor)
    with (folder / info.location).open("rb") as file:
        file.seek(info.offset or 0)
        tensor.raw_data = file.read(info.length if info.length is not None else -1)
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]


@behaves("OnnxParser")
class _Parser:
    _errors: list[Any]

    def _init(self, network: Any, logger: Any) -> None:
        self._network, self._logger, self._errors = network, logger, []
        self._mask = 1 << int(CLASSES["OnnxParserFlag"].NATIVE_INSTANCENORM)
        self._subgraphs, self._loaded = [], None

    num_errors = property(lambda self: len(self._errors))
    num_subgraphs = property(lambda self: len(self._subgraphs))
    flags = property(lambda self: self._mask, lambda self, v: setattr(self, "_mask", v))

    def set_flag(self, flag: Any) -> None:
        self._mask |= 1 << int(flag)

    def clear_flag(self, flag: Any) -> None:
        self._mask &= ~(1 << int(flag))

    def get_flag(self, flag: Any) -> bool:
        return bool(self._mask >> int(flag) & 1)

    def get_error(self, index: int) -> Any:
        return self._errors[index]

    def clear_errors(self) -> None:
        self._errors = []

    def set_builder_config(self, builder_config: Any) -> bool:
        return True

    def supports_operator(self, op_name: str) -> bool:
        return onnx.defs.has(op_name) and not _faults.unsupported(helper.make_node(op_name, [], []))

    def get_used_vc_plugin_libraries(self) -> list[str]:
        return []

    def parse_from_file(self, model: str) -> bool:
        try:
            data = Path(model).read_bytes()
        except OSError as error:
            return self._fail(parser_error("MODEL_DESERIALIZE_FAILED", f"Failed to open file: {model}: {error}"))
        return self._parse(data, model)

    def parse(self, model: Any, path: str | None = None) -> bool:
        return self._parse(model, path)

    def load_model_proto(self, model: Any, path: str | None = None) -> bool:
        self._loaded = (bytes(model), path)
        return True

    def load_initializer(self, name: str, data: int, size: int) -> bool:
        return self._loaded is not None

    def parse_model_proto(self) -> bool:
        return self._loaded is not None and self._parse(*self._loaded)

    def parse_with_weight_descriptors(self, model: Any) -> bool:
        return self._parse(model, None)

    def _fail(self, *errors: Any) -> bool:
        self._errors += errors
        for error in errors:
            say(self._logger, "ERROR", f"In node {error._node} with name: {error._node_name}: {error._desc}")
        return False

    def _parse(self, data: Any, path: str | None) -> bool:
        try:
            model = load(data, path)
            if not model.graph.node:
                raise ValueError("the graph has no nodes")
        except Exception as error:  # any way in which a protobuf can be bad
            return self._fail(parser_error("MODEL_DESERIALIZE_FAILED", f"Failed to parse the ONNX model: {error}"))
        if bad := readable(model):
            return self._fail(*(parser_error("UNSUPPORTED_NODE", each.reason, each) for each in bad))
        as_functions(model)
        known = CLASSES["OnnxParserFlag"].__members__
        self._network._parsed_with = [name for name, flag in known.items() if self.get_flag(flag)]
        importer = Importer(self._network, model)
        if bad := [Bad(at, node, reason) for reason, at, node in importer.untyped()]:
            return self._fail(*(parser_error("UNSUPPORTED_NODE_DATATYPE", each.reason, each) for each in bad))
        importer.run()
        return True

    def get_layer_output_tensor(self, name: str, i: int) -> Any:
        for layer in self._network._layers:
            if layer.name == name:
                return layer.outputs[i]
        return None

    def supports_model_v2(self, model: Any, path: str | None = None) -> bool:
        self._subgraphs = subgraphs(load(model, path))
        return all(good for _nodes, good in self._subgraphs)

    def supports_model(self, model: Any, path: str | None = None) -> Any:
        return self.supports_model_v2(model, path), list(self._subgraphs)

    def is_subgraph_supported(self, index: int) -> bool:
        return bool(self._subgraphs[index][1])

    def get_subgraph_nodes(self, index: int) -> list[int]:
        return list(self._subgraphs[index][0])


def subgraphs(model: onnx.ModelProto) -> list[tuple[list[int], bool]]:
    """Runs of consecutive nodes that are all supported, or not."""
    bad = {each.at for each in readable(model) if not each.stack}
    found: list[tuple[list[int], bool]] = []
    for at in range(len(model.graph.node)):
        good = at not in bad
        if found and found[-1][1] == good:
            found[-1][0].append(at)
        else:
            found.append(([at], good))
    return found
