"""A PyTorch module as a side of a comparison: its operators are the nodes of a graph like that of an ONNX model."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.feeds.fit import fit_feed
from layerwise._tool.backends.feeds.pairing import paired_inputs
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.sides.models import Model, UnreadModel
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side

if TYPE_CHECKING:
    import onnx

    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.backends.torch.hooks import Hooked
    from layerwise._tool.backends.torch.parts import Held
    from layerwise._tool.backends.torch.runner import TorchRunner
    from layerwise._tool.backends.torch.traced import Traced
    from layerwise._tool.surgery.cut.segments import GraphCut

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


class ModuleFile(ModelFile):
    """A module in the place of a model's file: its operators as a structure, its weights as they are in memory."""

    def __init__(self, path: str, operators: "Operators") -> None:
        self.path = self.real_path = Path(path)
        self.folder = self.data_folder = Path()
        self._fd, self._operators = -1, operators

    def structure(self) -> "onnx.ModelProto":
        made: onnx.ModelProto = self._operators.structure()
        return made

    def structure_bytes(self) -> bytes:
        data: bytes = self.structure().SerializeToString()
        return data

    def array(self, name: str) -> Array:
        try:
            return self._operators.traced().weight(name)
        except KeyError:
            raise BadFile(self.path, f"there is no weight {shown(name, 200)!r}") from None


class Operators:
    """The operators of a module, traced for the shapes of the feed that was last taken in.

    modules_do: whether the modules inside do where there are no operators. by_modules: why there are none.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.modules_do = True
        self.runner: Callable[[], TorchRunner] | None = None
        self.by_modules: str | None = None
        self._traced: dict[Shapes, Traced] = {}
        self._recorded: Hooked | None = None
        self._feed: Feed | None = None
        self._expected: Feed | None = None
        self._held: Held | None = None

    def expect(self, feed: Feed) -> None:
        """The comparison will be fed with this: what there is to trace a module by that has no example inputs."""
        self._expected = feed

    def take(self, feed: Feed) -> None:
        """The module is about to run on this feed."""
        self._feed, self._recorded = feed, None

    def traced(self) -> "Traced | Hooked":
        """The operators for the shapes of the last feed, or of the example inputs; the modules inside, with what they
        give for it, where torch.export does not take the module (by_modules says why) and that will do.

        LayerwiseError where it will not do, or there is neither a feed nor an example.
        """
        if self.runner is None:
            raise UsageError(f"{shown(self.path)} is not loaded")
        runner = self.runner()
        feed = (runner.example or self._expected) if self._feed is None else self._feed
        if not feed:
            from layerwise._tool.backends.feeds.sources import UNKNOWN_INPUTS  # brings numpy.random

            raise UsageError(f"{shown(self.path)}: {UNKNOWN_INPUTS}")
        shapes = tuple((name, array.shape) for name, array in feed.items())
        if self.by_modules is None and shapes not in self._traced:
            from layerwise._tool.backends.torch.traced import NotTraced

            try:
                self._traced[shapes] = runner.trace(feed)
            except NotTraced as error:
                if not self.modules_do:
                    raise
                self.by_modules = str(error)
        if self.by_modules is None:
            return self._traced[shapes]
        if self._recorded is None:
            self._recorded = runner.record(feed)
        return self._recorded

    def structure(self) -> "onnx.ModelProto":
        """The operators as an ONNX structure."""
        from layerwise._tool.backends.torch.parts import Held, as_onnx

        traced = self.traced()
        if self._held is None:
            assert self.runner is not None
            self._held = Held(self.runner().running, self.traced)
        return as_onnx(traced.graph, self._held.name)

    def close(self) -> None:
        """Forget the module."""
        if self._held is not None:
            self._held.close()
        self._traced.clear()


class TorchModel(UnreadModel):
    """A module as a model. Its graph is known once it is loaded and inputs are."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.traced = Operators(path)
        self.file = ModuleFile(path, self.traced)

    @property
    def inputs(self) -> list[TensorInfo]:
        """The parameters of forward; [] where no example inputs tell what they are."""
        runner = self.traced.runner
        return sizeless(runner().inputs) if runner is not None else []

    @cached_property
    def cut(self) -> "GraphCut":
        """The operators as a graph. LayerwiseError where torch.export does not take the module."""
        from layerwise._tool.surgery.cut.segments import GraphCut

        return GraphCut(self.file.structure())


class TorchSide(ModelSide):
    """A module: its inputs and outputs have names of their own, its sizes are not fixed."""

    def __init__(self, index: int, spec: RunnerSpec, name: str, rename: Mapping[str, str], model: Model) -> None:
        model = TorchModel(model.path)  # modules are told apart by their options too
        super().__init__(index, spec, name, rename, model)
        self._operators = model.traced
        self._operators.runner = lambda: self.module_runner

    @property
    def backend(self) -> tuple[str, ...]:
        return ("torch", str(self.spec.options.get("device", "cpu")))

    @property
    def module_runner(self) -> "TorchRunner":
        """The runner, which knows the module."""
        return cast("TorchRunner", self.runner)

    def fit(self, feed: Feed, warn: Callable[[str], None]) -> Feed:
        """The feed by the names of forward's parameters. UsageError as `fit_feed`.

        Of a module without example inputs nothing is known: the feed as it is.
        """
        fitted = super().fit(feed, warn) if self.runner.inputs else feed
        self._operators.take(fitted)
        return fitted

    def expect(self, feed: Feed) -> None:
        self._operators.expect(feed)

    def needs_operators(self) -> None:
        """The modules inside will not do: they cannot be run on other tensors."""
        self._operators.modules_do = False

    @property
    def limit(self) -> str:
        """What was not seen of the module, "" if all of it was."""
        why = self._operators.by_modules
        return f"its operators were not seen, only what the modules inside return: {why}" if why else ""

    def close(self) -> None:
        """Nothing: parts of a module run by the runner of the whole."""

    def end(self) -> None:
        self._operators.close()
        super().close()


def sizeless(inputs: list[TensorInfo]) -> list[TensorInfo]:
    """The inputs with any size in every dimension: those of an example say nothing of others."""
    return [msgspec.structs.replace(info, shape=(None,) * len(info.shape or ())) for info in inputs]


def feeding_side(suspect: ModelSide, reference: Side) -> ModelSide:
    """Of two sides the one whose model tells what inputs there are: an ONNX model rather than a module."""
    onnx = isinstance(suspect, TorchSide) and isinstance(reference, ModelSide) and not isinstance(reference, TorchSide)
    return cast("ModelSide", reference) if onnx else suspect


def tells_inputs(side: ModelSide) -> bool:
    """Whether a side knows what it takes: a module without example inputs does not."""
    return not isinstance(side, TorchSide) or bool(side.module_runner.inputs)


def known_inputs(side: ModelSide) -> list[TensorInfo] | None:
    """What feeds for a side are made for, None where it does not know that."""
    return side.model.inputs if tells_inputs(side) else None


def renamed_feeds(feeds: Iterable[Feed], own: ModelSide, suspect: ModelSide) -> Iterator[Feed]:
    """Feeds by the names of a suspect that is a module. own: the side whose inputs they were made for."""
    for feed in feeds:
        names = paired_inputs(feed, suspect.model.inputs) if own is not suspect else {}
        for name, taken in names.items():
            own.naming.add(taken, name)
        yield {names.get(name, name): array for name, array in feed.items()}


def example_feeds(
    feeds: FeedSpec, sides: Iterable[Side], own: ModelSide, similar: bool, context: "JobContext"
) -> Iterator[Feed] | None:
    """The inputs that a module came with, by the names that `own` has for them, where nobody asked for others.

    similar: an input may go by a similar name, or by its place. None where there are none.
    """
    side = next((side for side in sides if isinstance(side, TorchSide) and side.module_runner.example), None)
    if side is None or not _unasked(feeds, own) or (side.module_runner.made_up and not isinstance(own, TorchSide)):
        return None
    where = f"the example inputs of {shown(side.spec.model or '', 200)}"
    context.log(f"inputs: {where}")
    example = {side.common(name): array for name, array in side.module_runner.example.items()}
    inputs = own.model.inputs
    return iter([fit_feed(example, inputs, context.warn, where, similar=similar) if inputs else example])


def read_from_graph(feeds: FeedSpec, sides: Iterable[Side], own: ModelSide) -> FeedSpec:
    """The feeds, made by what the graph of `own` does with its inputs where a module came without meaningful ones."""
    made_up = any(isinstance(side, TorchSide) and side.module_runner.made_up for side in sides)
    return msgspec.structs.replace(feeds, made="auto") if made_up and _unasked(feeds, own) else feeds


def _unasked(feeds: FeedSpec, own: ModelSide) -> bool:
    """Whether nothing was said about inputs; those of a module alone cannot be read from its graph."""
    plain = msgspec.structs.replace(feeds, iterations=None, made="polygraphy")
    auto = feeds.made == "auto" and not isinstance(own, TorchSide)
    return plain == FeedSpec() and feeds.iterations in (None, 1) and not auto
