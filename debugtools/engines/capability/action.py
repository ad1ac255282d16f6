"""The job action `capability`: what TensorRT's parser supports of a model, and the parts as models."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import onnx

from layerwise._tool.backends.errors import writing
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.folders import whole_folder
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.inspect.support import Refusal, Support
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.debugtools.convert.engine import message_log
from layerwise._tool.debugtools.engines.capability.rows import PartRow
from layerwise._tool.debugtools.engines.capability.spec import CapabilitySpec
from layerwise._tool.surgery.cut.pieces import Pieces
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.types.infer import inferred_structure
from layerwise._tool.surgery.wire.pieces import THRESHOLD

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


RESULTS = "results.txt"
_PART = re.compile(r"(un)?supported_subgraph-nodes-\d+-\d+\.onnx(\.data)?")
_TITLE = "===== Summary ====="
Answer = list[tuple[list[int], bool]]
Ask = Callable[[Loadable], Answer]


@dataclass(frozen=True)
class NodeGroup:
    """Some nodes of a graph, by position. supported: all of them."""

    nodes: tuple[int, ...]
    supported: bool

    @property
    def file(self) -> str:
        """Return the name of the file that it is saved to, as in Polygraphy."""
        prefix = "supported" if self.supported else "unsupported"
        return f"{prefix}_subgraph-nodes-{min(self.nodes)}-{max(self.nodes)}.onnx"


class Whole:
    """A model to be split. Shapes are inferred if possible."""

    def __init__(self, file: ModelFile) -> None:
        self.loadable = Loadable(data=file.structure_bytes(), folder=file.folder)
        self._base, self._folder = file.real_path, file.folder
        model = parse_model(inferred_structure(file.structure_bytes())[0], file.path)
        self.pieces = Pieces(model, model.graph)
        graph = model.graph
        self._types = {value.name: value.type for value in (*graph.value_info, *graph.output, *graph.input)}
        self._outputs = {value.name for value in graph.output}
        self._readers: dict[str, list[int]] = defaultdict(list)
        for position, names in enumerate(self.pieces.reads):
            for name in names:
                self._readers[name].append(position)

    def operators(self, part: NodeGroup) -> dict[str, int]:
        """Return how many nodes of each operator a part has."""
        return dict(Counter(self.pieces.nodes[at].op_type for at in part.nodes))

    def piece(self, part: NodeGroup) -> Structure:
        """Return a part as a separate model; its weights stay in place."""
        order = sorted(part.nodes)
        feeds = {name: self._types.get(name, onnx.TypeProto()) for name in self.pieces.feeds(order)}
        model = onnx.ModelProto.FromString(self.pieces.build(order, feeds, self._gives(order)))
        for value in (*model.graph.input, *model.graph.output):
            value.type.CopyFrom(self._types.get(value.name, onnx.TypeProto()))
            if value.type.WhichOneof("value") is None:
                value.ClearField("type")
        return Structure.from_proto(model, self._folder, self._base)

    def part_model(self, part: NodeGroup) -> Loadable:
        """Return a part in a form that can be parsed."""
        return Loadable(data=self.piece(part).proto().SerializeToString(), folder=self._folder)

    def _gives(self, order: Sequence[int]) -> list[str]:
        """Return the outputs of these nodes that others read, nobody reads, or the model returns."""
        inside = set(order)
        made = [name for at in order for name in self.pieces.nodes[at].output if name]
        return [name for name in made if name in self._outputs or not self._readers[name]
                or not inside.issuperset(self._readers[name])]  # fmt: skip


def partition(whole: Whole, ask: Ask, *, deep: bool) -> list[NodeGroup]:
    """Return the parts of a model, in order of their first nodes. deep: query unsupported parts alone, repeatedly,
    since some of their nodes may then be supported.
    """
    waiting = _answered(range(len(whole.pieces.nodes)), ask(whole.loadable))
    done: list[NodeGroup] = []
    while waiting:
        part = waiting.pop()
        inner = [] if part.supported or not deep else _answered(sorted(part.nodes), ask(whole.part_model(part)))
        if any(each.supported for each in inner):
            waiting += inner
        else:
            done.append(part)
    return sorted(done, key=lambda part: min(part.nodes))


def _answered(nodes: Sequence[int], answer: Answer) -> list[NodeGroup]:
    """Return the parts among `nodes`, which the answer refers to by position. Nodes not mentioned are unsupported."""
    spoken = {at for run, _ in answer for at in run}
    left = [at for at in range(len(nodes)) if at not in spoken]
    return [NodeGroup(tuple(nodes[at] for at in run), good) for run, good in [*answer, (left, False)] if run]


def largest(parts: Sequence[NodeGroup]) -> NodeGroup | None:
    """Return the supported part with the most nodes."""
    return max((part for part in parts if part.supported), key=lambda part: len(part.nodes), default=None)


def capability(context: "JobContext") -> dict[str, Any]:
    """Query TensorRT about the model that `context.params` (a CapabilitySpec) names.

    Result: supported; if not, folder, and results (the file with the summary); summary; refusals (node, name,
    op, reason, stack); parts (a PartRow each); largest (the file of the largest
    supported part, or None). Raises MissingDependency without TensorRT, BadFile for a file that is not a model.
    """
    spec = read_spec(context.params, CapabilitySpec, "what to ask")
    support = Support(tensorrt(), Messages(message_log(context, spec.verbose), verbose=spec.verbose), spec.options)
    options = spec.model_options
    with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as file:
        whole = Whole(file)
        refusals = support.refusals(whole.loadable)
        if not refusals:
            return {"supported": True, "folder": None, "results": None, "summary": "", "refusals": [], "parts": [],
                    "largest": None}  # fmt: skip
        return _Partitioned(spec, whole, support, refusals, context).result()


class _Partitioned:
    """A model that is not supported as a whole."""

    def __init__(
        self, spec: CapabilitySpec, whole: Whole, support: Support, refusals: list[Refusal], context: "JobContext"
    ) -> None:
        self.spec, self.whole, self.support, self.refusals, self.context = spec, whole, support, refusals, context
        self.folder = Path(spec.folder)

    def result(self) -> dict[str, Any]:
        parts = partition(self.whole, self.support.parts, deep=self.spec.deep)
        best = largest(parts)
        results = self.folder / RESULTS
        with writing(shown(str(self.folder))):
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            with whole_folder(self.folder, ours=_is_ours, merge=True) as new:
                rows = [self._row(number, part, parts, new) for number, part in enumerate(parts)]
                summary = self._summary(rows)
                atomic_write(new / RESULTS, summary)
        return {
            "supported": False, "folder": str(self.folder), "results": str(results), "summary": summary,
            "refusals": msgspec.to_builtins(self.refusals), "parts": msgspec.to_builtins(rows),
            "largest": str(self.folder / best.file) if best else None,
        }  # fmt: skip

    def _row(self, number: int, part: NodeGroup, parts: Sequence[NodeGroup], folder: Path) -> PartRow:
        self.context.progress(number, len(parts), "parts", part.file)
        path, place = folder / part.file, self.folder / part.file
        external = Path(f"{path.name}.data") if self.spec.external else None
        size = self.spec.model_options.external_data_size_threshold
        each = self.spec.model_options.external_each
        save(self.whole.piece(part), path, external=external, each=each, threshold=THRESHOLD if size is None else size,
             overwrite=True)  # fmt: skip
        return PartRow(
            file=str(place), first=min(part.nodes), last=max(part.nodes), nodes=len(part.nodes),
            supported=part.supported, operators=self.whole.operators(part),
            op=self.whole.pieces.nodes[min(part.nodes)].op_type,
            reason="" if part.supported else self._reason(part),
        )  # fmt: skip

    def _reason(self, part: NodeGroup) -> str:
        """Return why a part is unsupported: the reasons for its nodes in the whole model, else for the part alone."""
        inside = set(part.nodes)
        told = [refusal.reason for refusal in self.refusals if refusal.node in inside and not refusal.stack]
        told = told or [refusal.reason for refusal in self.support.refusals(self.whole.part_model(part))]
        return " | ".join(dict.fromkeys(told)) or "it is taken alone, but not in this model"

    def _summary(self, rows: Sequence[PartRow]) -> str:
        if not self.spec.deep:
            return refusal_table(self.refusals)
        reasons: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for row in rows:
            if not row.supported:
                reasons.setdefault((row.op, row.reason), []).append((row.first, row.last + 1))
        return part_table(reasons)


def _is_ours(name: str) -> bool:
    return name == RESULTS or _PART.fullmatch(name) is not None


def refusal_table(refusals: Sequence[Refusal]) -> str:
    """Return why the parser rejects the model: function stack, operator, node, reason."""
    groups: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault(" -> ".join(refusal.stack), []).append(refusal)
    rows = [(stack, each.op, each.name, each.reason) for stack, found in groups.items() for each in found]
    return _table(("Stack trace", "Operator", "Node", "Reason"), rows)


def part_table(reasons: Mapping[tuple[str, str], Sequence[tuple[int, int]]]) -> str:
    """Return unsupported parts by operator and reason: their number, first node and the one after the last."""
    rows = [(op, str(len(spans)), reason, str([list(span) for span in spans]))
            for (op, reason), spans in reasons.items()]  # fmt: skip
    return _table(("Operator", "Count", "Reason", "Nodes"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [head, *([shown(cell, 2000) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([_TITLE, lines[0], "-" * (sum(widths) + 3 * (len(head) - 1)), *lines[1:], ""])
