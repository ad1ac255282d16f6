"""Which nodes of an ONNX model TensorRT's parser takes, and why it refuses the others."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.trt.building.network import creation_flags
from layerwise._tool.backends.trt.building.plugins import load_plugins
from layerwise._tool.backends.trt.capabilities import member
from layerwise._tool.backends.trt.logger import Messages, make_logger
from layerwise._tool.backends.trt.options import NetworkOptions


@dataclass(frozen=True)
class Refusal:
    """Why the parser refuses a model. node: its place in the graph, -1 where none is named; stack: of local functions
    around it.
    """

    node: int
    name: str
    op: str
    reason: str
    stack: tuple[str, ...] = ()


class Support:
    """Asks the parser of one TensorRT, with a user's flags and plugins. UsageError for a flag that is none."""

    def __init__(self, trt: Any, messages: Messages, options: NetworkOptions) -> None:
        self._trt, self._messages, self._options = trt, messages, options
        self._logger = make_logger(trt, messages)
        load_plugins(trt, self._logger, options.plugins)

    def refusals(self, model: Loadable) -> list[Refusal]:
        """Why the parser refuses a model; none where it takes it."""
        parser, _held = self._parser()
        if parser.parse(model.read(), path=_beside(model)):
            return []
        return [_refusal(parser.get_error(at)) for at in range(parser.num_errors)] or [
            Refusal(-1, "", "", self._messages.reason("TensorRT does not say why"))
        ]

    def parts(self, model: Loadable) -> list[tuple[list[int], bool]]:
        """Runs of nodes that are taken, or not, by their places in the graph.

        Nodes that the parser refuses by name are not, whatever it says of their runs: it may take an operator of which
        it refuses a type.
        """
        parser, _held = self._parser()
        parser.supports_model_v2(model.read(), path=_beside(model))
        refused = {refusal.node for refusal in self.refusals(model) if not refusal.stack}
        found = []
        for at in range(parser.num_subgraphs):
            nodes = list(parser.get_subgraph_nodes(at))
            taken = set(nodes) - refused if parser.is_subgraph_supported(at) else set()
            found += [(list(run), good) for good, run in groupby(nodes, taken.__contains__)]
        return found

    def _parser(self) -> tuple[Any, Any]:
        """A parser, and what it must not outlive."""
        builder = self._trt.Builder(self._logger)
        network = builder.create_network(creation_flags(self._trt, strongly_typed=self._options.strongly_typed))
        parser = self._trt.OnnxParser(network, self._logger)
        for name in self._options.onnx_flags:
            parser.set_flag(member(self._trt.OnnxParserFlag, name, "--onnx-flags"))
        if self._options.plugin_instancenorm:
            parser.clear_flag(self._trt.OnnxParserFlag.NATIVE_INSTANCENORM)
        return parser, (network, builder)


def _beside(model: Loadable) -> str | None:
    folder = model.data_folder()
    return None if folder is None else str(folder / "model.onnx")


def _refusal(error: Any) -> Refusal:
    return Refusal(error.node(), error.node_name(), error.node_operator(), error.desc(),
                   tuple(error.local_function_stack()))  # fmt: skip
