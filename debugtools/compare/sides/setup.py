"""What a comparison needs first: models and sides. Their sessions begin to open before the rest is even imported."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import msgspec

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.feeds.plan_text import pinning
from layerwise._tool.backends.runner import load_backend
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools.compare.memory import keep_for_reuse, keep_nothing_back
from layerwise._tool.debugtools.compare.sides.making import make_sides
from layerwise._tool.debugtools.compare.sides.marks import any_marks
from layerwise._tool.debugtools.compare.sides.models import OpaqueModel, make_model
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.sides.torch import TorchSide, read_from_graph
from layerwise._tool.debugtools.compare.spec import CompareSpec, compares_every_layer

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.debugtools.align.fingerprint import Fingerprint

_LITTLE = 1 << 30  # bytes of weights


class Feeding(Protocol):
    """What every feed is shown to before anything is run on it."""

    def begin(self, feed: Mapping[str, Array]) -> None: ...
    def unsure(self) -> bool: ...
    def again(self, feed: Mapping[str, Array], local: "Mapping[str, Fingerprint]") -> bool: ...


class Setup:
    """The sides of a comparison, and how it goes about them. aligner: what aligns them, once that was begun.

    suspect_names: where the first side is a PyTorch module, its operators are the comparison's nodes.

    observing: layers are looked at, not just outputs. marks: of what; one_at_a_time: a session is closed after its
    plain run, because memory counts, or because the plain runs are done after one iteration.
    """

    def __init__(self, spec: CompareSpec, *, suspect_names: bool = False) -> None:
        if not spec.runners:
            raise UsageError("there is nothing to run: name at least one runner, such as --onnxrt")
        self.spec = spec
        self.aligner: Feeding | None = None
        self._started = False
        path = spec.model or next(
            (runner.model for runner in spec.runners if runner.model and runner.kind != "torch"), None
        )
        self.model = make_model(path, spec.model_options) if path else None
        self.sides = make_sides(spec, self.model, {"torch": TorchSide})
        if self.model is None:  # modules are compared with one another
            self.model = next((side.model for side in self.sides if isinstance(side, TorchSide)), None)
        if suspect_names and isinstance(self.sides[0], TorchSide):
            self.model = self.sides[0].model
        self.model_sides = [side for side in self.sides if isinstance(side, ModelSide)]
        engines = any(side.spec.kind == "trt" for side in self.model_sides)
        for side in self.model_sides:
            side.fed_for_engines = engines
            side.own_model = side.own_model or side.model is not self.model
            side.similar_inputs = spec.align != "names" and not spec.strict_names
        self.pairs = [(i, i + 1) for i in range(len(self.sides) - 1)]
        asked = spec.observe != "auto" or spec.truth
        self.observing = self.model is not None and (any_marks(spec.marks) or asked)
        everything = compares_every_layer(spec)
        self.marks = msgspec.structs.replace(spec.marks, everything=True) if everything else spec.marks
        self.whole_graph = self.observing or bool(spec.tolerance.auto)
        self._share_sessions()
        self.feeds = spec.feeds
        self.one_at_a_time = spec.memory_budget is not None or (self.observing and self.count() == 1)

    def _share_sessions(self) -> None:
        """Let sides that are configured alike use one session for their plain runs too, as they do for segments.

        Only where layers are observed and on the CPU, where new sessions of one configuration are bit-equal.
        """
        if not self.observing:
            return
        first: dict[tuple[int, bytes], ModelSide] = {}
        for side in self.model_sides:
            if side.spec.kind != "onnxrt" or any(name.lower() != "cpu" for name in side.spec.providers):
                continue
            key = id(side.model), msgspec.json.encode(msgspec.structs.replace(side.spec, name="", model=None))
            owner = first.setdefault(key, side)
            side.session_owner = owner if owner is not side else None

    def last_use(self, side: ModelSide) -> bool:
        """Whether no later side uses this side's session in the same iteration."""
        owner = side.session_owner or side
        return not any(other.session_owner is owner for other in self.model_sides if other.index > side.index)

    def count(self) -> int | None:
        """How many iterations there will be, None if only the source of the inputs knows."""
        feeds = self.spec.feeds
        return feeds.iterations or (None if feeds.files or feeds.script else 1)

    def start(self) -> None:
        """Begin to open sessions in threads: all, or the first if they take turns.

        Engines are imported and graphs read before: a thread that needs the interpreter waits for all others that do.
        """
        (keep_for_reuse if self.spec.memory_budget is None else keep_nothing_back)()
        self._started = True
        first = self._owners()[: 1 if self._take_turns() else None]
        for side in first:
            load_backend(side.spec.kind)
            if side.spec.kind == "onnxrt":
                with suppress(LayerwiseError):  # its file keeps what is read; what is wrong is told by who uses it
                    side.model.whole()
        for side in first:
            side.open_soon()

    def _owners(self) -> list[ModelSide]:
        return [side for side in self.model_sides if side.session_owner is None]

    def _take_turns(self) -> bool:
        return self.one_at_a_time or self.spec.sequential

    def read(self) -> None:
        """Begin to read the models, in a thread."""
        if not (self.model and self.pairs):
            return
        pool = ThreadPoolExecutor(1, "parse")
        self.model.prepare(whole_graph=self.whole_graph, pool=pool)
        if self.observing:
            models = {id(model): model for model in (self.model, *(side.model for side in self.model_sides))}
            for model in models.values():
                model.prepare(whole_graph=True, pool=pool)
            for model in models.values():
                model.prepare_sizes(pool)
        pool.shutdown(wait=False)

    def check_opened(self) -> None:
        """Raise what has gone wrong by now with sessions that have been begun."""
        for side in self.model_sides:
            side.check_opened()

    def open_next(self) -> None:
        """Begin to open, in threads, the sessions whose turn comes after those that `start` has begun to open, where
        that takes little memory. What has gone wrong with one that has been begun is raised.
        """
        self.check_opened()
        sides, bounded = self._owners(), self.spec.memory_budget is not None or self.spec.sequential
        if not self._started or bounded or any(side.backend != ("onnxrt", "cpu") for side in sides):
            return
        models = {id(side.model): side.model for side in sides}
        if sum(model.weight_bytes() for model in models.values()) <= _LITTLE:
            for side in sides:
                side.opening()

    def plan_feeds(self, context: "JobContext", own: ModelSide) -> FeedSpec:
        """The feeds, planned by the graph of a side where that is asked for; what is chosen is said once."""
        self.feeds = read_from_graph(self.feeds, self.sides, own)
        if self.feeds.made == "auto" and not isinstance(own.model, OpaqueModel) and not isinstance(own, TorchSide):
            from layerwise._tool.surgery.feeds.planned import planned

            self.feeds = planned(self.feeds, own.model.file.structure, context.warn, context.log, context.row)
            for side in self.model_sides:
                side.hint = pinning(self.feeds.plan)
        return self.feeds

    def close(self) -> None:
        """Close all sessions; a module stays for its parts."""
        for side in self.sides:
            side.close()

    def end(self) -> None:
        """Give everything back."""
        for side in self.sides:
            side.end()
