"""The model in one choice of precision after another: as the runner runs it, and as a file for commands and people."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import onnx

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.filesystem.files import atomic_write, atomic_writer
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.debugtools.compare.sides.save_model import write_onnx
from layerwise._tool.debugtools.search.judges.protocol import Artifact
from layerwise._tool.debugtools.search.rows import CandidateRow
from layerwise._tool.surgery.cut.file import Opener
from layerwise._tool.surgery.model.structure import node_label
from layerwise._tool.surgery.precision.lowering import Lowering, fill
from layerwise._tool.surgery.precision.plan import LowType


class Choices:
    """items: labels of the nodes that can be low, in topological order; a choice is the set of those that are kept in
    FP32. positions: where each item's nodes are; nodes that share a name are one item.

    emulate: what the runner gets is FP32 nodes between Cast round trips; emulate_files: what is written to files too.
    folder: for the weights of all choices.
    """

    def __init__(
        self, file: ModelFile, nodes: Sequence[onnx.NodeProto], low: LowType, folder: Path, *,
        emulate: bool, emulate_files: bool,
    ) -> None:  # fmt: skip
        self._file, self._low, self._folder, self._emulate_files = file, low, folder, emulate_files
        self._emulate, self._kind = emulate, str(low)
        self.run = Lowering(file.structure(), file.folder, low, folder / "run", emulate=emulate)
        labels = frozenset(self.run.labels)
        places: dict[str, list[int]] = {}
        for i, node in enumerate(nodes):
            if node_label(node) in labels:
                places.setdefault(node_label(node), []).append(i)
        self.items = list(places)
        self.positions = list(places.values())

    @cached_property
    def _files(self) -> Lowering:
        if self._emulate_files == self._emulate:
            return self.run
        file = self._file
        return Lowering(file.structure(), file.folder, self._low, self._folder / "file", emulate=self._emulate_files)

    def nodes(self, items: Iterable[int]) -> list[int]:
        """Positions of the nodes of these items, ascending."""
        return sorted(i for item in items for i in self.positions[item])

    def loadable(self, items: Iterable[int]) -> Loadable:
        """The choice as the runner runs it."""
        return Loadable(data=self.run.model(self._labels(items)).SerializeToString(), folder=self.run.folder)

    def write(self, items: Iterable[int], path: Path, opener: Opener = atomic_writer) -> None:
        """The choice as a file of its own. OSError as the disk gives it."""
        _write(fill(self._files.model(self._labels(items)), self._files.folder), path, opener)

    def write_run(self, items: Iterable[int], path: Path) -> None:
        """The choice as the runner runs it, as a file of its own."""
        whole = fill(self.run.model(self._labels(items)), self.run.folder)
        atomic_write(path, whole.SerializeToString())

    def artifact(
        self, items: Sequence[int], feed: Mapping[str, Array], gives: Collection[str], about: CandidateRow,
        iteration: int = 0,
    ) -> Artifact:  # fmt: skip
        """A candidate. about: as rows show it; iteration: the question's number."""
        base = f"{self._file.structure_key()} {self._kind} {self._emulate} {self._emulate_files}"
        digest = blake2b(f"{base} {tuple(items)}".encode(), digest_size=16)
        return Artifact(
            nodes=tuple(self.nodes(items)), glue=(), key=digest.hexdigest(), feeds=feed, gives=tuple(gives),
            build=lambda: self.loadable(items).read(), write=lambda path, opener: self.write(items, path, opener),
            about=about, iteration=iteration,
        )  # fmt: skip

    def close(self) -> None:
        """Remove the weights."""
        self.run.close()
        if "_files" in self.__dict__:
            self._files.close()

    def _labels(self, items: Iterable[int]) -> list[str]:
        return [self.items[item] for item in items]


class QuantisedChoices(Choices):
    """Choices of nodes that can be quantised: of `op_types`, or any (None). quantise: the model with nodes of these
    names in FP32.
    """

    def __init__(
        self, file: ModelFile, nodes: Sequence[onnx.NodeProto], folder: Path, op_types: Collection[str] | None,
        quantise: Callable[[list[str]], AbstractContextManager[Loadable]],
    ) -> None:  # fmt: skip
        super().__init__(file, nodes, "float16", folder, emulate=False, emulate_files=False)
        types = {node.op_type for node in nodes} if op_types is None else op_types
        chosen = [k for k, places in enumerate(self.positions) if nodes[places[0]].op_type in types]
        self.items, self.positions = [self.items[k] for k in chosen], [self.positions[k] for k in chosen]
        self._quantise, self._kind = quantise, "int8"

    def write(self, items: Iterable[int], path: Path, opener: Opener = atomic_writer) -> None:
        with self._quantise(self._labels(items)) as found:
            whole = fill(parse_model(found.read()), found.data_folder() or path.parent)
        _write(whole, path, opener)

    def write_run(self, items: Iterable[int], path: Path) -> None:
        self.write(items, path)


def _write(whole: onnx.ModelProto, path: Path, opener: Opener) -> None:
    if whole.ByteSize() >= onnx.checker.MAXIMUM_PROTOBUF:
        write_onnx(whole, path, None, None)
        return
    with opener(path) as stream:
        stream.write(whole.SerializeToString())
