"""A side that is read from a file."""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, get_args

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.dumps.ranks import Unclear
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.saved import SavedRunner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import is_floating
from layerwise._tool.debugtools.compare.pairing.counterparts import RenamedOutputs, outputs_of
from layerwise._tool.debugtools.compare.sides.side import Feed, Side
from layerwise._tool.debugtools.compare.spec import Observing

if TYPE_CHECKING:
    pass


class SavedSide(Side):
    """Outputs read from a file; any of them can be had at any time, of those in pieces once their shapes are known.

    notes: how the file was read. refused: names (the comparison's) of what cannot be had, with the reason.
    """

    def __init__(self, index: int, spec: RunnerSpec, name: str, rename: Mapping[str, str], runner: SavedRunner) -> None:
        super().__init__(index, spec, name, rename)
        self._runner = runner
        self.notes = list(runner.dump.notes)
        self.refused: dict[str, str] = {}
        self.iterations = len(runner.iterations)
        self.declared = outputs_of(self.common(own) for result in runner.iterations for own in result.outputs)

    def names(self, iteration: int) -> list[str]:
        """The comparison's names of what the file holds, in its order."""
        return [self.common(own) for own in self._runner.result(iteration).outputs]

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
        for own, name in [(own, self.common(own)) for own in self._runner.result(iteration).outputs]:
            try:
                array = self._runner.result(iteration).outputs[own]
            except Unclear as error:
                self.refused[name] = str(error)
                continue
            yield name, array

    def has(self, name: str) -> bool:
        return self.own(name) in self._runner.outputs and name not in self.refused

    def knows(self, own: str) -> bool:
        return own in self._runner.outputs

    def observed(self, layers: Container[str]) -> Observing | None:
        """How those of the file's tensors were observed that are among `layers`; None if none is.

        A file that says nothing is Polygraphy's, which runs one session with all marked tensors as outputs.
        """
        if not any(self.common(own) in layers for own in self._runner.outputs):
            return None
        noted = self._runner.iterations[0].observed
        return next((known for known in get_args(Observing) if known == noted), "marked")

    def plain(self, iteration: int, feed: Feed) -> IterationResult:
        result = self._runner.result(iteration)
        own = {self.common(own): own for own in result.outputs if self._whole(own)}
        outputs = RenamedOutputs(result.outputs, {name: own[name] for name in own if name not in self.refused})
        return IterationResult(outputs, result.runtime, self.name)

    def _whole(self, own: str) -> bool:
        dump = self._runner.dump
        return own not in dump.pieces or own in dump.shapes

    def fetch(self, iteration: int, name: str) -> Array:
        """One tensor, read from the file. Unclear if ranks have pieces of it that make no whole."""
        return self._runner.result(iteration).outputs[self.own(name)]
