"""Intents of the Graph screen: find, mark, jump, read weights. No widgets."""

import fnmatch
import re
from collections.abc import Iterable
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.shell import unquoted
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.controllers.opening import WarmWorker
from layerwise._tool.tui.controllers.yank import Copy
from layerwise._tool.tui.state.session import Session

MOST_WEIGHTS = 16


class GraphController:
    """Works on a session; what takes long is the warm worker's."""

    def __init__(self, session: Session, warm_worker: WarmWorker) -> None:
        self._session = session
        self._warm_worker = warm_worker
        self.statistics: dict[str, dict[str, Any]] = {}

    @property
    def index(self) -> GraphIndex:
        """The open graph. UsageError while there is none."""
        if self._session.index is None:
            raise UsageError("no graph is open yet")
        return self._session.index

    # ── weights ──

    async def read_weights(self, node: int) -> int:
        """Ask the warm worker for statistics of the node's initializers; returns how many there are.

        Raises LayerwiseError with the worker's message.
        """
        index = self.index
        weights = [t for t in index.node_inputs(node) if t >= 0 and index.tensor_kind(t) == "initializer"]
        names = [index.tensor_name(tensor) for tensor in weights]
        asked = [name for name in dict.fromkeys(names) if name not in self.statistics][:MOST_WEIGHTS]
        if asked:
            params = {"path": str(self._session.model), "names": asked}
            self.statistics |= await self._warm_worker.ask("weight_statistics", params)
        return len(names)

    # ── marks ──

    def toggle_marks(self, nodes: Iterable[int]) -> str:
        """Mark the outputs of `nodes`, or unmark them when all are marked; returns what happened, as text."""
        names = self.output_names(nodes)
        if not names:
            return "nothing to mark: outputs inside bodies and functions cannot be observed"
        if names <= self._session.marks:
            self._session.unmark(names)
            return f"unmarked {_counted(len(names), 'tensor')}"
        added = len(names - self._session.marks)
        self._session.mark(names)
        return f"marked {_counted(added, 'tensor')}"

    def output_names(self, nodes: Iterable[int]) -> set[str]:
        """Names of all outputs of those of `nodes` that stand in the main graph."""
        index = self.index
        return {
            index.tensor_name(tensor)
            for node in nodes if index.node_scope(node) == 0
            for tensor in index.node_outputs(node) if tensor >= 0
        }  # fmt: skip

    def tensors_like(self, pattern: str) -> set[str]:
        """Node outputs of the main graph whose name is `pattern`, or matches it as a glob; `all` is every one."""
        index = self.index
        if pattern in ("all", "*"):
            return self.output_names(index.main_nodes().tolist())
        exact = index.find_tensor(pattern)
        if exact >= 0:
            return {pattern}
        matches = re.compile(fnmatch.translate(pattern)).match
        return {name for name in self.output_names(index.main_nodes().tolist()) if matches(name)}

    # ── finding ──

    def find(self, text: str) -> int:
        """The node that `text` means: `#12` or `12`, a name of a node or tensor (quoted too), else a search's first.

        Raises UsageError when there is none.
        """
        index, text = self.index, text.strip()
        number = text.removeprefix("#")
        if number.isdecimal() and int(number) < index.n_nodes and int(number) in index.order:
            return int(number)
        for name in (text, unquoted(text)):
            node = index.find_node(name) if name else -1
            if node >= 0:
                return node
            tensor = index.find_tensor(name) if name else -1
            if tensor >= 0:
                return self._node_of(tensor)
        if number.isdecimal() and int(number) < index.n_nodes:
            raise UsageError(f"no node or tensor {number} in the edited graph")
        matches = index.search(text)
        if not text or not len(matches):
            raise UsageError(f"no node or tensor {shown(text, 80)}")
        return int(matches[0])

    def _node_of(self, tensor: int) -> int:
        """The producer, or the first reader of a graph input or initializer."""
        node = self.index.producer(tensor)
        if node >= 0:
            return node
        readers = self.index.consumers(tensor)
        if not len(readers):
            raise UsageError(f"{shown(self.index.tensor_name(tensor), 80)} is made and read by no node")
        return int(readers[0])

    def names_like(self, prefix: str, limit: int = 50) -> list[str]:
        """Node names (else output names) that hold `prefix`: completions."""
        if not prefix or self._session.index is None:
            return []
        found = self.index.search(f'"{prefix}"')[:limit]
        return [name for name in (self.name_of(int(node)) for node in found) if name]

    def name_of(self, node: int) -> str:
        """The node's name, or its first output's where it has none."""
        index = self.index
        outputs = [tensor for tensor in index.node_outputs(node) if tensor >= 0]
        return index.node_name(node) or (index.tensor_name(outputs[0]) if outputs else "")

    # ── the same from the command line ──

    def yank_targets(self) -> list[Copy]:
        """What can be copied for the selected node."""
        index, node = self.index, self._session.node
        outputs = [index.tensor_name(tensor) for tensor in index.node_outputs(node) if tensor >= 0]
        targets = [Copy("n", "node name", (index.node_name(node),))] if index.node_name(node) else []
        if outputs:
            targets.append(Copy("t", "tensor name", (outputs[0],)))
        if len(outputs) > 1:
            targets.append(Copy("a", "all outputs", tuple(outputs)))
        if self._session.marks:
            targets.append(Copy("m", "marked names", tuple(sorted(self._session.marks))))
        return [*targets, Copy("c", "command line", tuple(self.command()))]

    def command(self) -> list[str]:
        """The command line that compares what is marked now."""
        runners = [RunnerSpec(kind="onnxrt"), RunnerSpec(kind="reference")]
        marks = MarkSpec(names=sorted(self._session.marks))
        return command_line(CompareSpec(model=str(self._session.model), runners=runners, marks=marks))


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
