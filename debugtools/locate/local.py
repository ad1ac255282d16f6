"""Running parts of the suspect's graph on the reference's tensors."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from layerwise._tool.backends.errors import LayerwiseError, MissingDependency, UsageError
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.tensors import dtype_name, to_onnx
from layerwise._tool.debugtools.compare.sides.stream import observing
from layerwise._tool.debugtools.locate.part import Part
from layerwise._tool.surgery.cut.explode import Exploder

Array = NDArray[Any]
Result = Array | str | None
MANY_FAILURES = 200
"""Sessions that may be spent on finding out which regions of a graph fail."""
_DEAR_FAILURES = 40  # engines that may be, each built anew


class LocalRuns:
    """Runs regions of one graph. What cannot run is found by halving, and comes back as a message.

    varies: regions that run together may give something else than each by itself, since they are built together.
    """

    def __init__(self, part: Part, exploder: Exploder) -> None:
        self._part, self._exploder, self._spec = part, exploder, observing(part.spec)
        self.varies = part.spec.kind == "trt"
        self._tries = _DEAR_FAILURES if part.spec.kind == "trt" else MANY_FAILURES

    def run(
        self, names: Sequence[str], feed: Mapping[str, Array], own: Collection[str]
    ) -> Iterator[tuple[str, Result]]:
        """Give each tensor of `names` as its region makes it, or why it cannot; None for what cannot be fed.

        feed: at least what the regions read; own: tensors of Constant nodes that are taken as they are.
        MissingDependency if the backend is not there.
        """
        try:
            made = self._infer(names, feed, own)
        except MissingDependency:
            raise
        except UsageError:  # strings beside types that NumPy lacks
            yield from self._halves(names, feed, own, None)
        except LayerwiseError as error:
            yield from self._halves(names, feed, own, str(error))
        else:
            for name in names:
                yield name, made.get(name, "it gives no value")

    def _infer(self, names: Sequence[str], feed: Mapping[str, Array], own: Collection[str]) -> dict[str, Array]:
        wanted = self._exploder.feeds(names, own)
        types = {name: to_onnx(dtype_name(feed[name])) for name in wanted}
        exploded = self._exploder.build(names, types, own)
        model = Loadable(data=exploded.data, folder=self._part.folder)
        with open_runner(self._spec, model, name=self._part.name) as runner:
            outputs = runner.infer({name: feed[name] for name in exploded.feeds}).outputs
        return {exploded.gives[given]: array for given, array in outputs.items() if given in exploded.gives}

    def _halves(
        self, names: Sequence[str], feed: Mapping[str, Array], own: Collection[str], why: str | None
    ) -> Iterator[tuple[str, Result]]:
        self._tries -= 1
        if len(names) == 1 or self._tries < 0:
            yield from ((name, why) for name in names)
            return
        middle = len(names) // 2
        yield from self.run(names[:middle], feed, own)
        yield from self.run(names[middle:], feed, own)
