"""The sides of a comparison: runners with a model, and saved outputs. All speak names of the comparison's model."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.feeds.fit import fit_feed, fit_input
from layerwise._tool.backends.feeds.pairing import channels_moved, paired_inputs
from layerwise._tool.backends.feeds.plan_text import explained
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Runner, open_runner
from layerwise._tool.backends.specs import BRIEF_SPINNING, RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo, dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.sides.naming import Naming
from layerwise._tool.debugtools.compare.sides.stream import GraphStream, Held, Open, SessionPool, on_host

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut, Segment


class ObservedGraph(Struct):
    """The graph that a side is observed in: the model's own, or the one that onnxruntime made of it.

    names: the graph's tensor -> the side's tensor, and how the graph holds it if that is not as it is (its layout);
    None: the same names. unmatched: tensors of the graph that are none of the model's. values: gives the tensors of one
    feed, where they are seen in one run of the whole and not made segment by segment.
    """

    cut: "GraphCut"
    folder: Path
    executed: bool = False
    names: dict[str, tuple[str, Held | None]] | None = None
    unmatched: list[str] = field(default_factory=list)
    values: Callable[[Feed], Feed] | None = None

    def makes(self) -> dict[str, str]:
        """The side's tensors that can be had here -> the graph's."""
        if self.names is None:
            return {name: name for name in self.cut.maker}
        return {own: name for name, (own, _) in self.names.items()}


class Side:
    """One runner of a comparison. `rename`: name in the comparison's model -> name on this side.

    declared: the outputs (the comparison's names) that it may give, empty before it has run.
    """

    declared: frozenset[str] = frozenset()

    def __init__(self, index: int, spec: RunnerSpec, name: str, rename: Mapping[str, str]) -> None:
        self.index, self.spec, self.name = index, spec, name
        self.naming = Naming(rename)

    @property
    def backend(self) -> tuple[str, ...]:
        """What computes: the runner's kind and, of onnxruntime, its providers."""
        if self.spec.kind != "onnxrt":
            return (self.spec.kind,)
        return (self.spec.kind, *(name.lower() for name in self.spec.providers or ["cpu"]))

    def own(self, name: str) -> str:
        """This side's name of a tensor."""
        return self.naming.own(name)

    def common(self, own: str) -> str:
        """The comparison's name of one of this side's tensors."""
        return self.naming.common(own)

    def has(self, name: str) -> bool:
        """Whether this side can give the tensor when everything is observed."""
        raise NotImplementedError

    def knows(self, own: str) -> bool:
        """Whether there is a tensor of that name here."""
        raise NotImplementedError

    def expect(self, feed: Feed) -> None:
        """Learn, before anything else of an iteration, what the comparison is fed with, by the comparison's names."""

    def plain(self, iteration: int, feed: Feed) -> IterationResult:
        """The outputs of the run exactly as configured."""
        raise NotImplementedError

    def close(self) -> None:
        """Give memory back."""

    def end(self) -> None:
        """Give everything back: the side is not used any more."""
        self.close()


class ModelSide(Side):
    """A backend that runs a model: the comparison's, or one of its own. session_owner: whose session it uses.

    hint: what to say where it does not run. similar_inputs: data may be for an input of another name. fed_for_engines:
    data may have the types that an engine takes.
    """

    def __init__(self, index: int, spec: RunnerSpec, name: str, rename: Mapping[str, str], model: Model) -> None:
        super().__init__(index, spec, name, rename)
        self.model = model
        self.own_model = spec.model is not None
        self._runner: Runner | None = None
        self._opening: Future[Runner] | None = None
        self.session_owner: ModelSide | None = None
        self.hint = ""
        self.similar_inputs = False
        self.fed_for_engines = spec.kind == "trt"
        self.graph: ObservedGraph | None = None
        self._made: dict[str, str] | None = None

    def open_soon(self) -> None:
        """Begin to open the session, in a thread; what goes wrong is raised where the runner is used."""
        pool = ThreadPoolExecutor(1, "open")
        self._opening = pool.submit(self._open)
        pool.shutdown(wait=False)

    def opening(self) -> "Future[Runner]":
        """The session that is being opened, or is open; what goes wrong is raised where the runner is used."""
        if self.session_owner is not None:
            return self.session_owner.opening()
        if self._runner is not None:
            done: Future[Runner] = Future()
            done.set_result(self._runner)
            return done
        if self._opening is None:
            self.open_soon()
        assert self._opening is not None
        return self._opening

    def check_opened(self) -> None:
        """Raise what went wrong, if it has by now."""
        if self._opening is not None and self._opening.done():
            self._opening.result()

    def _open(self) -> Runner:
        spec = self.spec.usual_settings(BRIEF_SPINNING) if self.spec.kind == "onnxrt" else self.spec
        return open_runner(spec, self.model.whole(), name=self.name)

    @property
    def runner(self) -> Runner:
        if self.session_owner is not None:
            return self.session_owner.runner
        if self._runner is None:
            opening, self._opening = self._opening, None
            self._runner = opening.result() if opening else self._open()
        return self._runner

    def close(self) -> None:
        if self._opening is not None and self._opening.exception() is None:
            self._opening.result().close()
        self._opening = None
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def has(self, name: str) -> bool:
        return self.own(name) in self.made

    def knows(self, own: str) -> bool:
        return own in self.model.cut.maker or own in self.model.cut.inputs

    @property
    def observed(self) -> ObservedGraph:
        """The graph that is observed; the model's own unless `graph` is set."""
        if self.graph is None:
            self.graph = ObservedGraph(self.model.cut, self.model.file.folder)
        return self.graph

    def observe(self, graph: ObservedGraph | None) -> None:
        """Have this side observed in another graph, None for the model's own."""
        self.graph, self._made = graph, None

    @property
    def made(self) -> dict[str, str]:
        """This side's tensors that can be observed -> their names in the observed graph."""
        if self._made is None:
            self._made = self.observed.makes()
        return self._made

    def plain(self, iteration: int, feed: Feed) -> IterationResult:
        runner = self.runner
        with explained(self.hint):
            result = runner.infer(feed)
        self.declared = frozenset(map(self.common, self.runner.outputs))
        outputs = dict(next(self.naming.named(own, array)) for own, array in result.outputs.items())
        return IterationResult(outputs, result.runtime, self.name)

    def fit(self, feed: Feed, warn: Callable[[str], None]) -> Feed:
        """The feed as this side's model takes it."""
        if not self.own_model:
            if not self.fed_for_engines:
                return feed
            return self._as_typed(feed, self.runner.inputs if self.spec.kind == "trt" else self.model.inputs, warn)
        where = f"feed of {shown(Path(self.spec.model or '').name, 80)}"
        renamed = {self.own(name): array for name, array in feed.items()}
        if self.similar_inputs:
            for name, own in paired_inputs(renamed, self.model.inputs, turned=True).items():
                warn(f"{where}: data of input {shown(name, 80)} are for {shown(own, 80)} (--strict-names does not)")
                self.naming.add(self.common(name), own)
                renamed[own] = renamed.pop(name)
            renamed |= self._turned(renamed, where, warn)
        return fit_feed(renamed, self.model.inputs, warn, where)

    def _turned(self, feed: Feed, where: str, warn: Callable[[str], None]) -> Feed:
        """Data for inputs that have their channels at the other end."""
        turned = {}
        for info in self.model.inputs:
            move = channels_moved(feed[info.name].shape, info) if info.name in feed else None
            if move is not None:
                turned[info.name] = np.ascontiguousarray(feed[info.name].transpose(move))
                told = f"turned to shape {list(turned[info.name].shape)}, the channels at the other end"
                warn(f"{where}: data of input {shown(info.name, 80)} are {told} (--strict-names does not)")
        return turned

    def _as_typed(self, feed: Feed, inputs: Iterable[TensorInfo], warn: Callable[[str], None]) -> Feed:
        """An engine may take its inputs in other types than the model that it was built of."""
        takes = {info.name: info for info in inputs}
        other = {name for name, array in feed.items() if name in takes and dtype_name(array) != takes[name].dtype}
        other -= {name for name in other if (dtype_name(feed[name]), takes[name].dtype) == ("float64", "float32")}
        where = f"feed of {shown(self.name, 80)}"
        return {name: fit_input(array, takes[name], warn, where) if name in other else array
                for name, array in feed.items()}  # fmt: skip

    def stream(
        self, plan: "Sequence[Segment]", feed: Feed, pool: SessionPool, session: Open = on_host, *, soon: bool = False
    ) -> Iterator[Mapping[str, Array]]:
        """Go through the observed graph segment by segment, giving tensors under the comparison's names.

        soon: the first segment begins to open at once, in a thread.
        """
        graph = self.observed
        stream = GraphStream(graph.cut, plan, self.spec, self.name, graph.folder, feed, pool, session, soon=soon)
        return (dict(self._renamed(graph, made)) for made in stream)

    def _renamed(self, graph: ObservedGraph, made: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
        for name, array in made.items():
            if graph.names is None:
                yield from self.naming.named(name, array)
            elif name in graph.names:
                own, layout = graph.names[name]
                yield from self.naming.named(own, layout(array) if layout else array)
