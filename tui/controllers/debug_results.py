"""What the user does with what a search has found: a node, a bundle, a copy."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.files import current_folder, user_path
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.shell import TITLE, shell_line
from layerwise._tool.debugtools.bundle.spec import BundleSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.rows import Node
from layerwise._tool.tui.controllers.run import wants_gpu
from layerwise._tool.tui.controllers.yank import Copy
from layerwise._tool.tui.state.debugging import DebugState, Shown, StepRow, SuspectRow
from layerwise._tool.tui.state.questions import Question
from layerwise._tool.tui.state.shared import AppState

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex


class DebugResults:
    """Bundles are jobs; each method that waits for one gives what to tell the user. written: the last one's folder."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self.written = ""

    async def bundle(self, debug: DebugState, nodes: list[int], iteration: int, folder: str) -> str:
        """Write a repro bundle of these nodes of a search's suspect."""
        if debug.compare is None:
            raise UsageError("a bundle needs two sides: the reference gives its golden outputs")
        of_row = f"-{nodes[0]}" if debug.search == "locate" else ""
        name = folder or f"bundle-{debug.job}{of_row}"
        return await self.bundle_of(debug.job, debug.compare, nodes, iteration, name)

    async def bundle_of(self, job: int, compare: CompareSpec, nodes: list[int], iteration: int, folder: str) -> str:
        """Write a repro bundle of nodes of the suspect that `job` is about."""
        target = current_folder() / user_path(folder)
        spec = BundleSpec(compare=compare, nodes=nodes, iteration=iteration, output=str(target))
        which = [*(["--nodes", *map(str, nodes)] if nodes else []),
                 *(["--iteration", str(iteration)] if iteration else [])]  # fmt: skip
        bundle = JobSpec(
            action="bundle", params=msgspec.to_builtins(spec), title=shell_line(["bundle", target], TITLE),
            command=["layerwise", "debug", "bundle", str(job), "-o", str(target), *which],
            gpus=await asyncio.to_thread(wants_gpu, compare), cwd=self._app.workspace.view(job).spec.cwd, source="tui",
        )  # fmt: skip
        number = await self._app.client.submit(bundle)
        self._app.say(f"job {number}: bundle started")
        view = await self._app.client.wait(number)
        if view.result is None:
            raise UsageError(f"job {number}: {(view.card or {}).get('summary', view.state)}")
        self.written = str(target)
        return f"{view.result.get('summary', 'bundle written')}: {_from_here(target)}"

    def yank_targets(self, debug: DebugState, question: Question | None) -> list[Copy]:
        """What can be copied."""
        targets = []
        view = self._app.jobs.view(debug.job)
        spec = self._app.jobs.spec(view) if view else None
        if spec is not None and spec.command:
            targets.append(Copy("c", "command", tuple(spec.command)))
        files = [*(question.beside.artifact if question else {}).items()]
        files += [*(debug.result.files if debug.result else {}).items()]
        targets += [Copy(what[:1], what, (path,)) for what, path in files]
        path = debug.model_path()
        targets += [Copy("f", "found model", (path,))] if path else []
        return [*targets, Copy("b", "bundle", (self.written,))] if self.written else targets


def _from_here(path: Path) -> str:
    """A path as short as it can be told."""
    here = current_folder()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def suspect_sets(debug: DebugState, row: Shown | None) -> list[tuple[str, list[int]]]:
    """(name, nodes) of each set of nodes that a search speaks against; of a suspect in `row` only that one."""
    if debug.search == "precision":  # its nodes are right, but not to be lowered
        return []
    if debug.search == "locate":
        suspects, sets = [row] if isinstance(row, SuspectRow) else [], list[list[Node]]()
    else:
        suspects = debug.result.suspects if debug.result else []
        sets = [entry.nodes for entry in debug.found]
    sets += [suspect.region or [suspect] for suspect in suspects]
    known = [[(node.i, node) for node in nodes if node.i is not None] for nodes in sets]
    return [(_named(nodes), [i for i, _ in nodes]) for nodes in known if nodes]


def _named(nodes: list[tuple[int, Node]]) -> str:
    more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
    return ", ".join(f"#{i} {node.op} {node.node}" for i, node in nodes[:3]) + more


def node_of(index: "GraphIndex | None", row: Shown | None) -> int:
    """The node of the open model that a row is about, -1 if none."""
    name = None if row is None or isinstance(row, StepRow) else row.node
    if index is None or not name:
        return -1
    node = index.find_node(name)
    tensor = index.find_tensor(name) if node < 0 else -1
    return index.producer(tensor) if tensor >= 0 else node
