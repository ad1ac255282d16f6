"""One build after another, each with its tactics on file.

An engine is built in this process, or in a job of its own that gives the GPU back when it is done. Files of tactics are
made of others: sampled, mixed, cut down to some layers.
"""

import json
import os
import random
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.gpus import visible_gpus
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.trt.building.builder import build_engine
from layerwise._tool.backends.trt.options import Shapes, TrtOptions
from layerwise._tool.backends.trt.tactics.record import Op, TacticRecord, decode_record, read_bounded, save_record
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.convert.engine import EngineSpec, loadable
from layerwise._tool.debugtools.engines.tactics import choices

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


Building = Callable[[TrtOptions], tuple[bytes, list[str]]]
"""Builds with these options: the engine, and what a user should know. LayerwiseError where that cannot be."""


def here(context: "JobContext", spec: EngineSpec) -> Building:
    """Build in this process."""
    model = loadable(spec)

    def build(options: TrtOptions) -> tuple[bytes, list[str]]:
        built = build_engine(
            model, options, progress=lambda done, total, text: context.progress(done, total, "steps", text)
        )
        return built.data, built.told

    return build


def apart(context: "JobContext", spec: EngineSpec) -> Building:
    """Build in a job of its own: this one holds no GPU while a person is asked."""
    workspace, target = Workspace(context.folder.parent.parent), context.artifacts / "built.engine"

    def build(options: TrtOptions) -> tuple[bytes, list[str]]:
        told: list[str] = []
        params = msgspec.to_builtins(msgspec.structs.replace(spec, options=options, output=str(target), overwrite=True))
        job = JobSpec(
            action="build_engine", params=params, title=f"build of job {context.folder.name}",
            command=list(context.raw.get("command", [])), cwd=str(context.raw.get("cwd", "")),
            gpus=int(bool(visible_gpus(os.environ))),
        )  # fmt: skip
        view = run_inline(job, _listener(context, told), workspace, ACTIONS)
        if view.state != "done":
            card = view.card or {}
            kind = UsageError if card.get("exit_code") == UsageError.exit_code else LayerwiseError
            raise kind(str(card.get("summary") or view.state))
        data = target.read_bytes()
        target.unlink()
        return data, told

    return build


def _listener(context: "JobContext", told: list[str]) -> Callable[[Event], None]:
    """Pass a build's progress on, and keep its notes."""

    def listen(event: Event) -> None:
        if event["type"] == "progress":
            context.progress(event["done"] or 0, event["total"], str(event.get("unit", "")), str(event.get("text", "")))
        elif event["type"] == "warning":
            told.append(str(event["text"]))

    return listen


def sampled(base: TacticRecord, seed: str) -> TacticRecord | None:
    """The record with a tactic for each operation drawn evenly from those that were timed; None if none has two."""
    draws = random.Random(seed)
    offered = {key: _usable(op) for key, op in base.ops.items()}
    if not any(len(tactics) > 1 for tactics in offered.values()):
        return None
    drawn = {key: draws.choice(tactics) if tactics else base.ops[key].tactic for key, tactics in offered.items()}
    ops = {key: msgspec.structs.replace(op, tactic=drawn[key]) for key, op in base.ops.items()}
    return msgspec.structs.replace(base, ops=ops)


def _usable(op: Op) -> list[str]:
    return list(dict.fromkeys(offer.tactic for offer in op.offered if offer.milliseconds is not None))


def mixed(good: Path, bad: Path, layers: Collection[str], target: Path) -> None:
    """Write to `target` the tactics of the good file, but those of the bad one for these layers."""
    one, other = decode_record(read_bounded(good)), decode_record(read_bounded(bad))
    if one is not None and other is not None:
        theirs = _keys(other)
        changed = {theirs[name]: other.ops[theirs[name]] for name in layers if name in theirs}
        save_record(msgspec.structs.replace(one, ops={**one.ops, **changed}), target)
        return
    replay, bads = _replay(good), _replay(bad)
    replay["replay"] = {**replay["replay"], **{name: bads["replay"][name] for name in layers if name in bads["replay"]}}
    atomic_write(target, json.dumps(replay, indent=1))


def joined(layers: Mapping[str, Path], target: Path) -> None:
    """Write to `target`, of each layer, what its file says of it, and of no other. All files are of one kind."""
    first = next(iter(layers.values()))
    record = decode_record(read_bounded(first))
    if record is not None:
        ops: dict[str, Op] = {}
        for name, path in layers.items():
            found = decode_record(read_bounded(path)) or record
            key = _keys(found)[name]
            ops[key] = found.ops[key]
        save_record(msgspec.structs.replace(record, ops=ops, cache=b""), target)
        return
    replay = _replay(first)
    replay["replay"] = {name: _replay(path)["replay"][name] for name, path in layers.items()}
    atomic_write(target, json.dumps(replay, indent=1))


def _keys(record: TacticRecord) -> Mapping[str, str]:
    """By the names that `debugtools.engines.tactics` gives operations, their keys."""
    return dict(zip((name for name, _ in choices(record)), record.ops, strict=True))


def _replay(path: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(read_bounded(path))
    return found


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
            reuse=False,
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
