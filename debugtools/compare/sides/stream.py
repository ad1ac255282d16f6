"""Running a model segment by segment, giving every observed tensor as soon as it is made."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar, Protocol

import msgspec
import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.reads import MissingTensor
from layerwise._tool.backends.onnxrt.saturation import avoids_saturation
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import NO_SPINNING, RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, to_onnx

if TYPE_CHECKING:
    from pathlib import Path

    from layerwise._tool.surgery.cut.segments import GraphCut, Segment


class Held(Protocol):
    """How an observed graph holds a tensor; called, it gives it as the model has it. typed: `back` gives it in the type
    that the graph takes, whatever the type of what it is given."""

    typed: ClassVar[bool]

    def __call__(self, array: Array) -> Array: ...
    def back(self, array: Array) -> Array: ...


class Blocked(Struct, frozen=True):
    """The layout of an NCHWc tensor, (N, C rounded up, ...) with `block` channels innermost; called, it gives the
    tensor as (N, C, ...)."""

    typed: ClassVar[bool] = False
    block: int
    channels: int

    def __call__(self, array: Array) -> Array:
        n, c, *rest = array.shape
        blocked = array.reshape(n, c // self.block, *rest, self.block)
        plain = np.moveaxis(blocked, -1, 2).reshape(n, c, *rest)
        return np.ascontiguousarray(plain[:, : self.channels])

    def back(self, array: Array) -> Array:
        """Return a tensor (N, C, ...) in this layout, channels that are not there filled with zeros."""
        n, c, *rest = array.shape
        whole = np.zeros((n, -(-c // self.block) * self.block, *rest), array.dtype)
        whole[:, :c] = array
        apart = whole.reshape(n, -1, self.block, *rest)
        return np.ascontiguousarray(np.moveaxis(apart, 2, -1)).reshape(whole.shape)


class SegmentSession(Protocol):
    """What runs a segment: a runner, or a session whose outputs stay on its device."""

    def infer(self, feed: Mapping[str, Array]) -> IterationResult: ...
    def close(self) -> None: ...


Open = Callable[[RunnerSpec, Loadable, str], SegmentSession]


def on_host(spec: RunnerSpec, model: Loadable, name: str) -> SegmentSession:
    """Open a runner, whose outputs are arrays."""
    return open_runner(spec, model, name=name)


def observing(spec: RunnerSpec) -> RunnerSpec:
    """The runner as it runs segments: nothing fused, memory given back at once. It optimises them where it is told to
    avoid kernels that saturate, since onnxruntime's optimiser does that.
    """
    if spec.kind == "trt":
        return _engine_of_part(spec)
    level = spec.graph_optimization_level
    if spec.kind == "onnxrt":
        level = "extended" if avoids_saturation(spec) else "disable"
    return msgspec.structs.replace(short_lived(spec), graph_optimization_level=level)


def _engine_of_part(spec: RunnerSpec) -> RunnerSpec:
    from layerwise._tool.backends.trt.options import of_part  # options that only engines have

    return of_part(spec)


def of_cut(spec: RunnerSpec) -> RunnerSpec:
    """The runner as it runs a part of its model once, as optimised as it is configured."""
    cut = _engine_of_part(spec) if spec.kind == "trt" else short_lived(spec)
    return msgspec.structs.replace(cut, model=None)


def short_lived(spec: RunnerSpec) -> RunnerSpec:
    """The runner in a session for one run: memory given back at once."""
    if spec.kind == "torch":
        return msgspec.structs.replace(spec, name="", rename={})
    options = {**spec.options, "arena": False}
    return msgspec.structs.replace(spec.setting(*NO_SPINNING), name="", rename={}, options=options)


class _Same:
    """An object by its identity, which nothing else can have while this is kept."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


class SessionPool:
    """Opens each segment once for all runners that are configured alike, and closes it after the last of them.

    keep: sessions stay open for the next iteration.
    """

    def __init__(self, keep: bool) -> None:
        self._keep = keep
        self._sharers: Counter[Hashable] = Counter()
        self._open: dict[Hashable, tuple[SegmentSession, int]] = {}
        self._opening: dict[Hashable, Future[SegmentSession]] = {}

    def open_soon(self, key: Hashable, number: int, opener: Callable[[], SegmentSession]) -> None:
        """Begin to open a segment's session in a thread; what goes wrong is raised where it is taken."""
        if (key, number) not in self._open and (key, number) not in self._opening:
            thread = ThreadPoolExecutor(1, "open")
            self._opening[key, number] = thread.submit(opener)
            thread.shutdown(wait=False)

    def share(self, key: Hashable) -> None:
        """Say that one more stream will run segments under this key."""
        self._sharers[key] += 1

    def forget(self) -> None:
        """End an iteration: no stream is left."""
        self._sharers.clear()
        if not self._keep:
            self.close()

    def take(self, key: Hashable, number: int, opener: Callable[[], SegmentSession]) -> SegmentSession:
        """Return the runner of segment `number`, opened if need be."""
        runner, uses = self._open.get((key, number), (None, 0))
        if runner is None:
            opening = self._opening.pop((key, number), None)
            runner = opening.result() if opening else opener()
        self._open[key, number] = runner, uses + 1
        return runner

    def give(self, key: Hashable, number: int) -> None:
        """Say that a stream is done with a segment."""
        runner, uses = self._open[key, number]
        if uses < self._sharers[key]:
            return
        if self._keep:
            self._open[key, number] = runner, 0
            return
        del self._open[key, number]
        runner.close()

    def close(self) -> None:
        for opening in self._opening.values():
            if opening.exception() is None:
                opening.result().close()
        self._opening.clear()
        for runner, _ in self._open.values():
            runner.close()
        self._open.clear()


class GraphStream:
    """One runner going through one graph.

    plan: segments in order. name: the runner's. feed: the graph's inputs. session: how to open what runs a segment.
    soon: the first one begins to open at once, in a thread.
    Iterating gives, per segment, the tensors that it gives out, in topological order; tensors that later segments need
    are carried along until their last use.
    """

    def __init__(
        self,
        cut: "GraphCut",
        plan: "Sequence[Segment]",
        spec: RunnerSpec,
        name: str,
        folder: "Path",
        feed: Mapping[str, Array],
        pool: SessionPool,
        session: Open = on_host,
        *,
        soon: bool = False,
    ) -> None:
        self.cut, self.plan, self.name, self.folder, self.pool = cut, plan, name, folder, pool
        self.spec, self._session = observing(spec), session
        self.key: Hashable = (_Same(plan), msgspec.json.encode(self.spec), session)
        self.live: dict[str, Array] = dict(feed)
        self._uses = Counter(name for segment in plan for name in segment.feeds)
        self.seconds = 0.0
        if soon and plan and self.live.keys() >= set(plan[0].feeds):
            pool.open_soon(self.key, 0, self._opener(plan[0]))

    def __iter__(self) -> Iterator[Mapping[str, Array]]:
        self.pool.share(self.key)
        for number, segment in enumerate(self.plan):
            made = self._run(number, segment)
            for name in segment.feeds:
                self._uses[name] -= 1
                if not self._uses[name]:
                    del self.live[name]
            self.live.update({name: array for name, array in made.items() if self._uses[name]})
            yield made

    def _run(self, number: int, segment: "Segment") -> Mapping[str, Array]:
        lacking = next((name for name in segment.feeds if name not in self.live), None)
        if lacking is not None:
            raise MissingTensor(lacking)
        feed = {name: self.live[name] for name in segment.feeds}
        result = self.pool.take(self.key, number, self._opener(segment)).infer(feed)
        self.pool.give(self.key, number)
        self.seconds += result.runtime or 0.0
        return result.outputs

    def _opener(self, segment: "Segment") -> Callable[[], SegmentSession]:
        types = {name: to_onnx(element(self.live[name])) for name in segment.feeds}

        def opener() -> SegmentSession:
            model = Loadable(data=self.cut.build(segment, types), folder=self.folder)
            try:
                return self._session(self.spec, model, self.name)
            except LayerwiseError:
                if not avoids_saturation(self.spec):
                    raise
            plain = msgspec.structs.replace(self.spec, graph_optimization_level="disable")
            return self._session(plain, model, self.name)  # onnxruntime refuses weights that are dequantised twice

        return opener


def element(array: Array) -> str:
    """The name of an array's element type; of one on a device too, which says it itself."""
    return dtype_name(array) if isinstance(array, np.ndarray) else str(array.dtype)
