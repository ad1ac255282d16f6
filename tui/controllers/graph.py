"""Intents of the Graph screen: open the model's index, find, mark, jump, read weights. No widgets."""

import fnmatch
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from backends.errors import LayerwiseError, UsageError
from backends.jobs.spec import JobSpec
from backends.specs import RunnerSpec
from backends.text import shown
from debugtools.compare.spec import CompareSpec, MarkSpec
from surgery.graph import GraphIndex
from surgery.graph.cache import has_index, index_folder
from tui.cli.line import command_line
from tui.controllers.warm import WarmWorker
from tui.controllers.yank import shell_line
from tui.state.session import Session
from tui.state.shared import AppState

MOST_WEIGHTS = 16


class GraphController:
    """Works on the shared state; what takes long is a job."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._session: Session = state.session
        self._warm: WarmWorker | None = None
        self.statistics: dict[str, dict[str, Any]] = {}

    @property
    def index(self) -> GraphIndex:
        """The open graph. UsageError while there is none."""
        if self._session.index is None:
            raise UsageError("no graph is open yet")
        return self._session.index

    # ── opening ──

    async def open_model(self, report: Callable[[str], None]) -> None:
        """Map the model's index, after a job has built it if there is none; `report` gets the progress.

        Raises LayerwiseError with what the job said.
        """
        model = self._session.model
        if model is None:
            raise UsageError("no model: start with `layerwise MODEL.onnx`")
        folder = index_folder(self._state.workspace.cache, model)
        if not has_index(folder):
            folder = Path((await self._index_job(str(model), report))["folder"])
        self._session.set_index(GraphIndex.open(folder))

    async def _index_job(self, model: str, report: Callable[[str], None]) -> dict[str, Any]:
        report("indexing: starting")
        spec = JobSpec(
            action="index", params={"path": model, "cache": str(self._state.workspace.cache)},
            title=f"index {model}", command=["layerwise", model], source="tui",
        )  # fmt: skip
        return await self._result_of(spec, report)

    async def _result_of(self, spec: JobSpec, report: Callable[[str], None]) -> dict[str, Any]:
        job = await self._state.client.submit(spec)
        problem = f"job {job} ended without a result"
        result: dict[str, Any] | None = None
        async for event in self._state.client.events(job):
            if event["type"] == "progress":
                report(f"{event.get('text') or spec.action}: {event.get('done')} of {event.get('total')}")
            elif event["type"] == "result":
                result = event["data"]
            elif event["type"] == "card":
                problem = shown(str(event.get("summary") or problem), 1000)
        if result is None:
            raise LayerwiseError(problem)
        return result

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
            self._warm = self._warm or WarmWorker(self._state.client, str(self._session.model))
            params = {"path": str(self._session.model), "names": asked}
            self.statistics |= await self._warm.ask("weight_statistics", params)
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
        """The node that `text` means: `#12` or `12`, a node's or tensor's name, else the first match of a search.

        Raises UsageError when there is none.
        """
        index, text = self.index, text.strip()
        number = text.removeprefix("#")
        if number.isdecimal() and int(number) < index.n_nodes:
            return int(number)
        node = index.find_node(text) if text else -1
        if node >= 0:
            return node
        tensor = index.find_tensor(text) if text else -1
        if tensor >= 0:
            return self._node_of(tensor)
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

    def yank_targets(self) -> list[tuple[str, str, str]]:
        """(key, what, text) of what can be copied for the selected node."""
        index, node = self.index, self._session.node
        outputs = [index.tensor_name(tensor) for tensor in index.node_outputs(node) if tensor >= 0]
        targets = [("n", "node name", index.node_name(node))] if index.node_name(node) else []
        if outputs:
            targets.append(("t", "tensor name", outputs[0]))
        if len(outputs) > 1:
            targets.append(("a", "all outputs", "\n".join(outputs)))
        if self._session.marks:
            targets.append(("m", "marked names", "\n".join(sorted(self._session.marks))))
        return [*targets, ("c", "command line", shell_line(self.command()))]

    def command(self) -> list[str]:
        """The command line that compares what is marked now."""
        runners = [RunnerSpec(kind="onnxrt"), RunnerSpec(kind="reference")]
        marks = MarkSpec(names=sorted(self._session.marks))
        return command_line(CompareSpec(model=str(self._session.model), runners=runners, marks=marks))


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
