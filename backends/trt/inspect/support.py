"""Which nodes of an ONNX model TensorRT's parser supports, and why it rejects the others."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.trt.building.network import Network, with_parser
from layerwise._tool.backends.trt.library import load_plugins
from layerwise._tool.backends.trt.logger import Messages, make_logger
from layerwise._tool.backends.trt.options import NetworkOptions


@dataclass(frozen=True)
class Refusal:
    """Why the parser rejects a model. node: its index in the graph, -1 if none is named; stack: the enclosing local
    functions.
    """

    node: int
    name: str
    op: str
    reason: str
    stack: tuple[str, ...] = ()


class Support:
    """Queries the parser of one TensorRT, with a user's flags and plugins. UsageError for an invalid flag."""

    def __init__(self, trt: Any, messages: Messages, options: NetworkOptions) -> None:
        self._trt, self._messages, self._options = trt, messages, options
        self._logger = make_logger(trt, messages)
        load_plugins(trt, self._logger, options.plugins)

    def refusals(self, model: Loadable) -> list[Refusal]:
        """Return why the parser rejects a model; empty if it accepts it."""
        made = self._network()
        parser = made.parser
        if parser.parse(model.read(), path=model.beside()):
            return []
        return [_refusal(parser.get_error(at)) for at in range(parser.num_errors)] or [
            Refusal(-1, "", "", self._messages.reason("TensorRT does not say why"))
        ]

    def parts(self, model: Loadable) -> list[tuple[list[int], bool]]:
        """Return consecutive nodes that are supported, or not, by their indices in the graph.

        Nodes that the parser rejects by name are unsupported even if it reports their subgraph as supported: it may
        support an operator, but not with that type.
        """
        made = self._network()
        parser = made.parser
        parser.supports_model_v2(model.read(), path=model.beside())
        refused = {refusal.node for refusal in self.refusals(model) if not refusal.stack}
        found = []
        for at in range(parser.num_subgraphs):
            nodes = list(parser.get_subgraph_nodes(at))
            taken = set(nodes) - refused if parser.is_subgraph_supported(at) else set()
            found += [(list(run), good) for good, run in groupby(nodes, taken.__contains__)]
        return found

    def _network(self) -> Network:
        """Return an empty network with its parser; keep it as long as the parser."""
        return with_parser(self._trt, self._logger, self._options, strongly_typed=self._options.strongly_typed)


def _refusal(error: Any) -> Refusal:
    return Refusal(error.node(), error.node_name(), error.node_operator(), error.desc(),
                   tuple(error.local_function_stack()))  # fmt: skip
