"""A side that is read from a file."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import get_args

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.dumps.ranks import Pieces, Unclear
from layerwise._tool.backends.results.inference import IterationResult, StoredOutputs
from layerwise._tool.backends.saved import SavedRunner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import is_floating
from layerwise._tool.debugtools.compare.pairing.counterparts import RenamedOutputs, outputs_of
from layerwise._tool.debugtools.compare.sides.side import Side
from layerwise._tool.debugtools.compare.spec import Observing


class SavedSide(Side):
    """Outputs read from a file; any of them can be had at any time, of those in pieces once their shapes are known.

    asked: what the user renamed: name in the comparison's model -> name in the file. notes: how the file was read.
    refused: names (the comparison's) of what cannot be had, with the reason.
    """

    def __init__(self, index: int, spec: RunnerSpec, name: str, rename: Mapping[str, str], runner: SavedRunner) -> None:
        super().__init__(index, spec, name, rename)
        self._runner = runner
        self.asked: Mapping[str, str] = {}
        self.notes = list(runner.dump.notes)
        self.refused: dict[str, str] = {}
        self.iterations = len(runner.iterations)
        self.declared = outputs_of(self.common(own) for result in runner.iterations for own in result.outputs)

    def own_results(self, iteration: int) -> Mapping[str, Array]:
        """What the file holds, by its own names, each read when it is asked for."""
        return self._runner.result(iteration).outputs

    @property
    def own_pieces(self) -> frozenset[str]:
        """The tensors that ranks have pieces of, by the file's names."""
        return self._runner.dump.pieces

    def shapes_of_pieces(self, own: str, shapes: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Those of some shapes to which pieces may be joined, by their sizes."""
        stored = self.own_results(0)
        value = stored.stored[own] if isinstance(stored, StoredOutputs) else None
        if not isinstance(value, Pieces):
            return []
        sizes = [prod(piece.shape) for piece in value.pieces]
        return sorted(shape for shape in shapes if prod(shape) in (sizes[0], sum(sizes)))

    def joined_to(self, own: str, shape: tuple[int, ...]) -> Array:
        """Pieces joined to a shape, which is kept. Unclear if they do not make it."""
        self._runner.dump.shapes[own] = shape
        return self.own_results(0)[own]

    def unsettle(self, own: str) -> None:
        """Forget what shape pieces were joined to."""
        self._runner.dump.shapes.pop(own, None)
        self._runner.dump.joined.pop(own, None)

    def named_anew(self) -> None:
        """Take in that the file's tensors go by other names now."""
        results = self._runner.iterations
        self.declared = outputs_of(name for result in results for own in result.outputs for name in self.commons(own))

    def commons(self, own: str) -> list[str]:
        """The comparison's names of one of the file's tensors."""
        return self.naming.commons(own)

    def names(self, iteration: int) -> list[str]:
        """The comparison's names of what the file holds, in its order."""
        return [name for own in self._runner.result(iteration).outputs for name in self.commons(own)]

    @property
    def pieces(self) -> list[str]:
        """The tensors (the comparison's names) that ranks have pieces of."""
        return [self.common(own) for own in self._runner.dump.pieces]

    @property
    def unsure(self) -> list[str]:
        """Those, and the tensors whose elements may be raw."""
        return [
            *self.pieces,
            *(self.common(own) for own in self._runner.dump.raw if own not in self._runner.dump.pieces),
        ]

    @property
    def joined(self) -> Mapping[str, str]:
        """How those that were read were joined, by this side's names."""
        return self._runner.dump.joined

    def settle(self, name: str, shape: Sequence[int], kind: str = "") -> None:
        """Say what shape the counterpart of a tensor has, which pieces are joined to, and of what type it is.

        Unclear if the dump has elements that may be raw, and the counterpart is of floats.
        """
        own, dump = self.own(name), self._runner.dump
        if own not in dump.shapes or not self.naming.aligned:
            dump.shapes[own] = tuple(shape)
        raw = dump.raw.get(own, "")
        if raw and is_floating(kind):
            word = "bfloat16" if raw == "uint16" else "float8_e4m3fn"
            told = f"its elements are {raw}, its counterpart's {kind}"
            raise Unclear(f"{told}: if they are raw, say what they are (--dump-rule 'GLOB:{word}')")

    def tensors(self, iteration: int) -> Iterator[tuple[str, Array]]:
        """All of an iteration, by the comparison's names, each read when it is asked for and not kept.

        Those in pieces whose shapes are not known, or that cannot be joined, are left out, and are in `refused` then.
        """
        for own in list(self._runner.result(iteration).outputs):
            try:
                array = self._runner.result(iteration).outputs[own]
            except Unclear as error:
                self.refused[self.common(own)] = str(error)
                continue
            yield from self.naming.named(own, array)

    def has(self, name: str) -> bool:
        return self.own(name) in self._runner.outputs and name not in self.refused

    def knows(self, own: str) -> bool:
        return own in self._runner.outputs

    def observed(self, layers: Container[str]) -> Observing | None:
        """How those of the file's tensors were observed that are among `layers`; None if none is.

        A file that says nothing is Polygraphy's, which runs one session with all marked tensors as outputs.
        """
        if not any(name in layers for own in self._runner.outputs for name in self.commons(own)):
            return None
        noted = self._runner.iterations[0].observed
        return next((known for known in get_args(Observing) if known == noted), "marked")

    def plain(self, iteration: int, feed: Feed) -> IterationResult:
        result = self._runner.result(iteration)
        own = {name: own for own in result.outputs if self._whole(own) for name in self.commons(own)}
        kept = {name: own[name] for name in own if name not in self.refused}
        outputs = RenamedOutputs(result.outputs, kept, self.naming.laid if self.naming.laid_out else None)
        return IterationResult(outputs, result.runtime, self.name)

    def _whole(self, own: str) -> bool:
        dump = self._runner.dump
        return own not in dump.pieces or own in dump.shapes

    def fetch(self, iteration: int, name: str) -> Array:
        """One tensor, read from the file. Unclear if ranks have pieces of it that make no whole."""
        return self.naming.laid(name, self._runner.result(iteration).outputs[self.own(name)])
