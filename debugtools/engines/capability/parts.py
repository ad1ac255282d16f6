"""Splits a model into parts that TensorRT supports and parts that it does not, each as a separate model."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.surgery.cut.pieces import Pieces
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.types.infer import inferred_structure

Answer = list[tuple[list[int], bool]]
Ask = Callable[[Loadable], Answer]


@dataclass(frozen=True)
class Part:
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

    def operators(self, part: Part) -> dict[str, int]:
        """Return how many nodes of each operator a part has."""
        return dict(Counter(self.pieces.nodes[at].op_type for at in part.nodes))

    def piece(self, part: Part) -> Structure:
        """Return a part as a separate model; its weights stay in place."""
        order = sorted(part.nodes)
        feeds = {name: self._types.get(name, onnx.TypeProto()) for name in self.pieces.feeds(order)}
        model = onnx.ModelProto.FromString(self.pieces.build(order, feeds, self._gives(order)))
        for value in (*model.graph.input, *model.graph.output):
            value.type.CopyFrom(self._types.get(value.name, onnx.TypeProto()))
            if value.type.WhichOneof("value") is None:
                value.ClearField("type")
        return Structure.from_proto(model, self._folder, self._base)

    def part_model(self, part: Part) -> Loadable:
        """Return a part in a form that can be parsed."""
        return Loadable(data=self.piece(part).proto().SerializeToString(), folder=self._folder)

    def _gives(self, order: Sequence[int]) -> list[str]:
        """Return the outputs of these nodes that others read, nobody reads, or the model returns."""
        inside = set(order)
        made = [name for at in order for name in self.pieces.nodes[at].output if name]
        return [name for name in made if name in self._outputs or not self._readers[name]
                or not inside.issuperset(self._readers[name])]  # fmt: skip


def partition(whole: Whole, ask: Ask, *, deep: bool) -> list[Part]:
    """Return the parts of a model, in order of their first nodes. deep: query unsupported parts alone, repeatedly,
    since some of their nodes may then be supported.
    """
    waiting = _answered(range(len(whole.pieces.nodes)), ask(whole.loadable))
    done: list[Part] = []
    while waiting:
        part = waiting.pop()
        inner = [] if part.supported or not deep else _answered(sorted(part.nodes), ask(whole.part_model(part)))
        if any(each.supported for each in inner):
            waiting += inner
        else:
            done.append(part)
    return sorted(done, key=lambda part: min(part.nodes))


def _answered(nodes: Sequence[int], answer: Answer) -> list[Part]:
    """Return the parts among `nodes`, which the answer refers to by position. Nodes not mentioned are unsupported."""
    spoken = {at for run, _ in answer for at in run}
    left = [at for at in range(len(nodes)) if at not in spoken]
    return [Part(tuple(nodes[at] for at in run), good) for run, good in [*answer, (left, False)] if run]


def largest(parts: Sequence[Part]) -> Part | None:
    """Return the supported part with the most nodes."""
    return max((part for part in parts if part.supported), key=lambda part: len(part.nodes), default=None)


def path_of(folder: Path, part: Part) -> Path:
    """Return where a part is saved."""
    return folder / part.file
