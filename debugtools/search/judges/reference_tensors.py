"""The reference's tensors, by the suspect's names."""

from collections.abc import Callable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.reads import MissingTensor
from layerwise._tool.backends.tensors import dtype_name, dtype_row, to_numpy
from layerwise._tool.debugtools.compare.memory import limits, usual_segment
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.sides.stream import SessionPool
from layerwise._tool.debugtools.locate.part import fit
from layerwise._tool.surgery.cut.sizes import Estimate
from layerwise._tool.surgery.types.node_types import tensor_types
from layerwise._tool.surgery.types.shapes import inferred_tensors

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut


Sizes = Mapping[str, Estimate]


Report = Callable[[int, int, str], None]


_MOST_ELEMENTS = 1 << 48  # of a tensor of zeros that takes no memory; NumPy counts to 2**63 bytes


class ReferenceTensors(Mapping[str, Array]):
    """Tensors by the suspect's names: its inputs, and all that the reference has too. Close it to free them.

    feed: the inputs as the comparison names them. folder: where what goes over the memory budget waits. warn: told if
    the reference cannot run, which then costs nothing but values; None: it must run.
    """

    def __init__(
        self, suspect: ModelSide, reference: Side, iteration: int, feed: Mapping[str, Array], folder: Path,
        budget: int | None, report: Report, warn: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self._suspect, self._reference, self._iteration = suspect, reference, iteration
        allowed = limits(budget, usual=usual_segment([reference.spec]))
        self._store = ArrayStore(allowed.waiting, folder)
        self._zeros: dict[str, Array] = {}
        self._feed = dict(suspect.fit(feed, unheard))
        known = _sizes(suspect, self._feed)
        other = isinstance(reference, ModelSide) and reference.model is not suspect.model
        fed = reference.fit(feed, unheard) if isinstance(reference, ModelSide) else feed
        theirs = _sizes(reference, fed) if other else known
        self._names = dict(self._shared(known, theirs))
        self._types = _types(suspect.model.cut) if other or isinstance(reference, SavedSide) else {}
        if isinstance(reference, ModelSide):
            try:
                self._run(reference, fed, theirs, allowed.segment, report)
            except LayerwiseError as error:
                if warn is None:
                    raise
                self._infer(str(error), warn)

    def _infer(self, why: str, warn: Callable[[str], None]) -> None:
        """Take zeros of the inferred type and shape for what could not be run; what is not known cannot be fed."""
        cut = self._suspect.model.cut
        infos = inferred_tensors(cut.model, {name: array.shape for name, array in self._feed.items()})
        missing = [tensor for tensor, name in self._names.items() if name not in self._store]
        for tensor in missing:
            shape = [int(dim or 0) for dim in infos[tensor].shape or ()] if tensor in infos else []
            if tensor in infos and prod(max(1, size) for size in shape) < _MOST_ELEMENTS:
                self._zeros[self._names[tensor]] = np.broadcast_to(np.zeros((), to_numpy(infos[tensor].dtype)), shape)
            else:
                del self._names[tensor]
        warn(
            f"{len(missing)} tensors could not be computed ({why}): types and shapes are inferred, and candidates' "
            "inputs hold zeros in their place"
        )

    def _shared(self, known: Sizes, theirs: Sizes) -> Iterator[tuple[str, str]]:
        """The suspect's tensors that the reference has too, with the comparison's names."""
        for tensor in self._suspect.model.cut.maker:
            name = self._suspect.common(tensor)
            own = self._reference.own(name)
            if _opaque(known, tensor) or _opaque(theirs, own):
                continue
            if self._reference.has(name) or (
                isinstance(self._reference, ModelSide) and own in self._reference.model.cut.initializers
            ):
                yield tensor, name

    def _run(self, side: ModelSide, fed: Mapping[str, Array], known: Sizes, limit: int, report: Report) -> None:
        wanted = {name for name in self._names.values() if side.has(name)}
        plan = side.model.cut.segments([side.own(name) for name in wanted], limit, known)
        pool, done = SessionPool(False), 0
        try:
            for made in side.stream(plan, fed, pool):
                for name, array in made.items():
                    if name in wanted:
                        self._store.put(name, array)
                        done += 1
                        report(done, len(wanted), name)
        finally:
            pool.close()

    def __getitem__(self, name: str) -> Array:
        if name in self._feed:
            return self._feed[name]
        if name not in self._names:
            raise MissingTensor(name)
        return fit(self._raw(self._names[name]), self._types.get(name))

    def raw(self, name: str) -> Array:
        """A tensor in the reference's own type, to compare with."""
        return self._feed[name] if name in self._feed else self._raw(self._names[name])

    def _raw(self, name: str) -> Array:
        if name in self._store:
            return self._store.get(name)
        if name in self._zeros:
            return self._zeros[name]
        if isinstance(self._reference, SavedSide):
            self._store.put(name, np.asarray(self._reference.fetch(self._iteration, name)))
            return self._store.get(name)
        assert isinstance(self._reference, ModelSide)
        array = self._reference.model.file.array(self._reference.own(name))
        return self._reference.naming.laid(name, array)

    def __contains__(self, name: object) -> bool:
        return name in self._feed or name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._feed, *self._names]))

    def __len__(self) -> int:
        return len(dict.fromkeys([*self._feed, *self._names]))

    def close(self) -> None:
        """Give memory and files back."""
        self._store.close()


def _sizes(side: Side, feed: Mapping[str, Array]) -> Sizes:
    assert isinstance(side, ModelSide)
    return side.model.cut.estimates_for(feed)


def _opaque(known: Sizes, name: str) -> bool:
    return name in known and known[name].opaque


def unheard(text: str) -> None:
    """The run that shows the failure has said it already."""


def _types(cut: "GraphCut") -> dict[str, np.dtype[Any]]:
    """The suspect's own types, as far as inference tells them."""
    try:
        found = tensor_types(cut.model)
    except LayerwiseError:
        return {}
    return {
        name: dtype_row(dtype_name(number)).numpy for name, number in found.items() if dtype_name(number) != "unknown"
    }
