"""One build after another, each with its tactics on file."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.trt.options import Shapes, TrtOptions
from layerwise._tool.backends.trt.tactics.record import decode_record, read_bounded, save_record
from layerwise._tool.debugtools.convert.engine import EngineSpec
from layerwise._tool.debugtools.search.builds.building import Building
from layerwise._tool.debugtools.search.builds.choosing import sampled

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

TACTICS = "tactics.json"
_CHOSEN = "chosen.json"
_TIMINGS = "timing.cache"


@dataclass
class Build:
    """data: the engine. tactics: what it has; chosen: what it was told to have, None where TensorRT chose."""

    data: bytes
    seconds: float
    tactics: Path
    chosen: Path | None
    files: dict[str, bytes] = field(default_factory=dict)


class EngineMaker:
    """Builds the engine of `spec` by the number of the trial; where it can, with tactics that are drawn.

    files of a build: by the names that the options have for its tactics, timing cache and engine.
    """

    def __init__(self, context: "JobContext", spec: EngineSpec, build: Building) -> None:
        self._context, self._options, self._build = context, spec.options, build
        self._folder = context.artifacts / "builds"
        self._said: set[str] = set()
        self._last: tuple[str, Build] | None = None

    def tactics(self, trial: str) -> Path:
        """Where the tactics of a trial are, if it could be built."""
        return self._folder / trial / TACTICS

    def fed(self, shapes: Shapes) -> None:
        """Build for these shapes of inputs, where no profile says otherwise."""
        self._options = msgspec.structs.replace(self._options, shapes={**shapes, **self._options.shapes})

    def drawn(self, trial: str) -> bool:
        """Whether a trial's tactics were drawn."""
        return (self._folder / trial / _CHOSEN).is_file()

    def make(self, trial: str, forced: Path | None = None) -> Build:
        """Build, with the tactics of the file `forced` if there is one. LayerwiseError where TensorRT cannot.

        The trial that was built last is not built again: a question that is asked anew is about the same engine.
        """
        if self._last is not None and self._last[0] == trial:
            return self._last[1]
        place = self._folder / trial
        make_folder(place)
        chosen = forced or self._drawn(trial, place / _CHOSEN)
        started = time.perf_counter()
        data, told = self._build(self._with(place, chosen))
        for note in told:
            self._say(note.replace(str(place / TACTICS), "A build's record"))
        found = Build(data, time.perf_counter() - started, place / TACTICS, chosen)
        found.files = self._named(place, found)
        self._last = trial, found
        return found

    def _with(self, place: Path, chosen: Path | None) -> TrtOptions:
        return msgspec.structs.replace(
            self._options,
            fresh=True,
            save_engine=None,
            save_tactics=str(place / TACTICS),
            load_tactics=str(chosen) if chosen else self._options.load_tactics,
            save_timing_cache=str(place / _TIMINGS) if self._options.save_timing_cache else None,
        )

    def _drawn(self, trial: str, target: Path) -> Path | None:
        """A file of tactics drawn from those that an earlier build timed; None where there is none to draw from."""
        if self._options.load_tactics or self._options.exclude_tactics:
            return None
        earlier = sorted(self._folder.glob(f"*/{TACTICS}"), key=lambda path: (len(path.parent.name), path.parent.name))
        first = next((path for path in earlier if path.parent.name != trial), None)
        record = decode_record(read_bounded(first)) if first else None
        drawn = sampled(record, f"{self._context.folder.name} {trial}") if record else None
        if drawn is None:
            if record is not None:
                self._say("TensorRT's log names no tactics to choose from: builds are repeated as they come.")
            return None
        self._say("Tactics are drawn evenly from those that TensorRT timed in the first build.")
        save_record(drawn, target)
        return target

    def _named(self, place: Path, build: Build) -> dict[str, bytes]:
        options = self._options
        found = {options.save_engine: build.data}
        if options.save_tactics:
            found[options.save_tactics] = build.tactics.read_bytes()
        if options.save_timing_cache and (place / _TIMINGS).is_file():
            found[options.save_timing_cache] = (place / _TIMINGS).read_bytes()
            (place / _TIMINGS).unlink()
        return {name: data for name, data in found.items() if name}

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._context.log(text)
