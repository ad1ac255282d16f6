"""The switchboard as sessions: one for each of a few consecutive parts of the graph, opened once.

A candidate changes nothing before its own part: its run begins there, on the tensors of the run in FP32, which are kept
where parts meet. Several runs may be under way at once, in threads.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock

import msgspec
import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.onnxrt.session import CPU, provider_names
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.specs import NO_SPINNING, RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, to_onnx
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.surgery.cut.segments import Segment
from layerwise._tool.surgery.cut.sizes import Estimate
from layerwise._tool.surgery.quantise.arithmetic import Dims
from layerwise._tool.surgery.quantise.board import Switch, board, switch
from layerwise._tool.surgery.quantise.candidates import Candidate
from layerwise._tool.surgery.quantise.formats import Format

Tensors = Mapping[str, Array]
_FALSE, _TRUE = np.zeros((), np.bool_), np.ones((), np.bool_)
_NOTHING = np.zeros((), np.float32)
_PARTS = 24
_AT_ONCE = 8  # runs; where there are more threads each run has several
_ROOM = 1 << 30  # bytes, for tensors where parts meet


class Setting(msgspec.Struct, frozen=True):
    """How a candidate is switched on. rounded: its activations; ends: its outputs. scales, zeros: position of an
    activation -> its scale and zero point; weights: position -> the array to take.
    """

    rounded: bool
    ends: bool
    scales: Mapping[int, Array]
    zeros: Mapping[int, Array]
    weights: Mapping[int, Array]


class Chain:
    """The parts of a model, switched. Close it. A feed is known by its object, which must live as long. last: the
    outputs of the last run in FP32.

    known: sizes of tensors; dims: of those that blocks are made of; types: ONNX element types, as far as known.
    at_once: how many runs at once use all threads best.
    """

    def __init__(
        self, model: Model, spec: RunnerSpec, chosen: Sequence[Candidate], form: Format,
        known: Mapping[str, Estimate], dims: Mapping[str, Dims], types: Mapping[str, int],
    ) -> None:  # fmt: skip
        self._model, self._spec, self._form, self._dims, self._types = model, _quiet(spec), form, dims, types
        self._chosen = {candidate.i: candidate for candidate in chosen}
        self.outputs = list(model.cut.outputs)
        seen = {operand.name for candidate in chosen for operand in candidate.operands}
        seen |= {name for candidate in chosen for name in made_by(model, candidate)}
        wanted = [name for name in (*self.outputs, *seen) if name in model.cut.maker]
        self.parts = model.cut.segments(wanted, _limit(model, wanted, known), known)
        self.part_of = {i: k for k, part in enumerate(self.parts) for i in part.nodes}
        self._needed = _needed(self.parts, self.outputs)
        self._runners: list[Runner | None] = [None] * len(self.parts)
        self._opening = [Lock() for _ in self.parts]
        self._threads = spec.threads or len(os.sched_getaffinity(0))
        self.at_once = min(self._threads, _AT_ONCE) if _divides_threads(spec) else 1
        self._expected = 1
        self._starts: dict[int, list[dict[str, Array]]] = {}
        self._room = _ROOM
        self.last: Tensors = {}

    def expect(self, runs: int) -> None:
        """Open sessions for so many runs at once, among which the threads are divided; nothing if they are open."""
        if runs != self._expected:
            self._close_sessions()
        self._expected = runs
        ahead = [k for k, part in enumerate(self.parts) if self._types.keys() >= set(part.feeds)]
        with ThreadPoolExecutor(self.at_once, "open") as pool:
            list(pool.map(self._try_to_open, ahead))

    def _try_to_open(self, k: int) -> None:
        with suppress(LayerwiseError):  # told where it is run
            self._session(k, self._types)

    def full(self, feed: Tensors, look: Collection[str] = ()) -> Iterator[Tensors]:
        """Run everything in FP32, part by part; gives what is looked at as far as each part makes it, at last the
        outputs. Keeps where parts meet for `run`, as long as there is room.
        """
        live: dict[str, Array] = {**feed}
        starts = []
        for k, part in enumerate(self.parts):
            starts.append({name: live[name] for name in self._needed[k] if name in live})
            made = self._run(k, live, {}, look)
            yield {name: made[name] for name in part.gives if name in look and name in made}
            live = self._after(k, live, made)
        held = {id(array): array.nbytes for start in starts for array in start.values()}
        if self._room >= sum(held.values()):
            self._room -= sum(held.values())
            self._starts[id(feed)] = starts
        self.last = {name: live[name] for name in self.outputs if name in live}

    def run(self, feed: Tensors, on: Mapping[int, Setting], look: Collection[str] = ()) -> dict[str, Array]:
        """The outputs, and what is looked at behind the first candidate, with these candidates switched on (by their
        positions). Begins at the first of them where the feed's run in FP32 is known.
        """
        return self._from(min((self.part_of[i] for i in on), default=0), feed, on, look, len(self.parts))

    def look(self, feed: Tensors, k: int, names: Collection[str]) -> Tensors:
        """Tensors that part `k` reads or makes, in FP32."""
        starts = self._starts.get(id(feed))
        found = {**(starts[k] if starts else {}), **self._from(k, feed, {}, names, k + 1)}
        return {name: found[name] for name in names if name in found}

    def _from(
        self, first: int, feed: Tensors, on: Mapping[int, Setting], look: Collection[str], end: int
    ) -> dict[str, Array]:
        starts = self._starts.get(id(feed))
        first, live = (first, dict(starts[first])) if starts else (0, dict(feed))
        found: dict[str, Array] = {}
        for k in range(first, end):
            made = self._run(k, live, on, look)
            found.update({name: made[name] for name in look if name in made})
            live = self._after(k, live, made)
        return {name: live[name] for name in self.outputs if name in live} | found

    def close(self) -> None:
        """Close all sessions."""
        self._close_sessions()
        self._starts = {}

    def _close_sessions(self) -> None:
        for runner in self._runners:
            if runner is not None:
                runner.close()
        self._runners = [None] * len(self.parts)

    def _run(self, k: int, live: Tensors, on: Mapping[int, Setting], look: Collection[str]) -> Tensors:
        part = self.parts[k]
        feed = {name: live[name] for name in part.feeds}
        runner = self._runners[k] or self._session(k, {name: to_onnx(dtype_name(feed[name])) for name in feed})
        for i in part.nodes:
            if i in self._chosen:
                feed.update(_set(switch(self._chosen[i]), on.get(i)))
        later = self._needed[k + 1]
        return runner.infer(feed, [name for name in part.gives if name in later or name in look]).outputs

    def _session(self, k: int, types: Mapping[str, int]) -> Runner:
        with self._opening[k]:
            runner = self._runners[k]
            if runner is None:
                part, spec = self.parts[k], self._spec
                fed = {name: types[name] for name in part.feeds}
                data = board(self._model.cut, part, fed, self._chosen, self._form, self._dims)
                if self._expected > 1:
                    spec = msgspec.structs.replace(spec, threads=max(1, self._threads // self._expected))
                runner = open_runner(spec, Loadable(data=data, folder=self._model.file.folder), name="switchboard")
                self._runners[k] = runner
            return runner

    def _after(self, k: int, live: Tensors, made: Tensors) -> dict[str, Array]:
        later = self._needed[k + 1]
        return {name: array for name, array in (*live.items(), *made.items()) if name in later}


def made_by(model: Model, candidate: Candidate) -> list[str]:
    """The tensors that a candidate's node makes."""
    return [name for name in model.cut.nodes[candidate.i].output if name]


def _set(own: Switch, setting: Setting | None) -> dict[str, Array]:
    fed: dict[str, Array] = dict.fromkeys((*own.scales.values(), *own.zeros.values(), *own.weights.values()), _NOTHING)
    flags = {own.on: setting is not None, own.rounded: setting is not None and setting.rounded,
             own.ends: setting is not None and setting.ends}  # fmt: skip
    fed |= {name: _TRUE if flag else _FALSE for name, flag in flags.items() if name}
    if setting is not None:
        for told, given in ((own.scales, setting.scales), (own.zeros, setting.zeros), (own.weights, setting.weights)):
            fed |= {name: given[position] for position, name in told.items() if position in given}
    return fed


def _limit(model: Model, wanted: Collection[str], known: Mapping[str, Estimate]) -> int | None:
    """Bytes of a part, of which there are to be about two dozen."""
    unknown = Estimate()
    made = sum(known.get(name, unknown).nbytes or 0 for name in wanted)
    weights = sum(ref.nbytes for ref in model.file.weights().values())
    return max(1, (made + weights) // _PARTS)


def _needed(parts: Sequence[Segment], outputs: Sequence[str]) -> list[frozenset[str]]:
    """What each part and those behind it read, and the outputs; last, the outputs alone."""
    found = [frozenset(outputs)]
    for part in reversed(parts):
        found.append(found[-1] | set(part.feeds))
    return found[::-1]


def _quiet(spec: RunnerSpec) -> RunnerSpec:
    """Threads of a session do not spin while those of another compute, what one has done with serves the next, and no
    node gets a layout of its own, from which each switched node would have to move back.
    """
    if spec.kind != "onnxrt":
        return msgspec.structs.replace(spec, model=None, name="")
    level = spec.graph_optimization_level or "extended"
    return msgspec.structs.replace(
        spec.setting(*NO_SPINNING), model=None, name="", rename={}, graph_optimization_level=level,
        options={"arena": "shared", **spec.options},
    )  # fmt: skip


def _divides_threads(spec: RunnerSpec) -> bool:
    return spec.kind == "onnxrt" and provider_names(spec.providers) == [CPU]
