"""Records, replays and excludes the implementations that TensorRT chooses for layers.

On 10 with an algorithm selector, in Polygraphy's replay JSON; on 11, which has none, and for records of that kind on
10 too, through the editable timing cache (`backends.trt.tactics.over_cache`).
"""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import write_named
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.capabilities import able, lacks
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.backends.trt.options import TrtOptions
from layerwise._tool.backends.trt.tactics.over_cache import CacheRecording
from layerwise._tool.backends.trt.tactics.record import Recording, TacticRecord, Tell, decode_record, read_bounded

Replay = dict[str, dict[str, Any]]


def described(context: Any, algorithm: Any) -> dict[str, Any]:
    """Return an IAlgorithm in the form of Polygraphy's replay."""
    variant, ends = algorithm.algorithm_variant, context.num_inputs + context.num_outputs
    infos = [_tensor(algorithm.get_algorithm_io_info(i)) for i in range(ends)]
    return {
        "implementation": variant.implementation,
        "tactic": variant.tactic,
        "inputs": infos[: context.num_inputs],
        "outputs": infos[context.num_inputs :],
        "polygraphy_class": "Algorithm",
    }


def _tensor(info: Any) -> dict[str, Any]:
    return {
        "dtype": f"DataType.{info.dtype.name}",
        "strides": list(info.strides),
        "vectorized_dim": info.vectorized_dim,
        "components_per_element": info.components_per_element,
        "polygraphy_class": "TensorInfo",
    }


def read_tactics(path: Path) -> Replay | TacticRecord:
    """Return the tactics in a file: Polygraphy's replay, by layer; a record; a bare timing cache as a record.

    BadFile if it is JSON but neither of the two.
    """
    data = read_bounded(path)
    record = decode_record(data)
    if record is not None:
        return record
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return TacticRecord(layerwise="tactics", cache=data)
    try:
        if all(isinstance(entry["tactic"], int) for entry in found["replay"].values()):
            return dict(found["replay"])
    except (KeyError, TypeError, AttributeError):
        pass
    raise BadFile(path, "not a tactic replay")


def recording(trt: Any, options: TrtOptions) -> Recording:
    """Return the handling of tactics for these options. BadFile, or UsageError for what this version cannot do."""
    if not (options.save_tactics or options.load_tactics or options.exclude_tactics):
        return Recording()
    named = {"--load-tactics": options.load_tactics, "--exclude-tactics": options.exclude_tactics}
    given = {option: read_tactics(Path(name)) for option, name in named.items() if name}
    records = {option: found for option, found in given.items() if isinstance(found, TacticRecord)}
    replays = {option: found for option, found in given.items() if not isinstance(found, TacticRecord)}
    if replays and not able(trt, "algorithm_selector"):
        option = next(iter(replays))
        raise UsageError(f"{option} {shown(str(named[option]), 200)} is a replay of TensorRT 10's algorithm selector. "
                         f"{lacks(trt, 'algorithm_selector')}: record anew with --save-tactics")  # fmt: skip
    if replays and records:
        raise UsageError("--load-tactics and --exclude-tactics: one is a replay, the other a record of a timing cache")
    if able(trt, "algorithm_selector") and not records:
        loaded = [replays.get(option, {}) for option in named]
        return SelectorRecording(trt, options.save_tactics, *loaded, timed=bool(options.load_timing_cache))
    return CacheRecording(trt, options, records.get("--load-tactics"), records.get("--exclude-tactics"))


class SelectorRecording(Recording):
    """Uses an algorithm selector (10 only). timed: with a timing cache that was named; without one all is timed."""

    wanted = True

    def __init__(self, trt: Any, save: str | None, replay: Replay, excluded: Replay, *, timed: bool) -> None:
        self._trt, self._save, self._timed = trt, save, timed
        self._tactics = Tactics(replay, excluded)
        self._selector: Any = None

    @property
    def error(self) -> LayerwiseError | None:  # type: ignore[override]
        return self._tactics.error

    def attach(self, config: Any, messages: Messages) -> None:
        config.algorithm_selector = self._selector = make_selector(self._trt, self._tactics)
        if not self._timed:
            config.set_flag(self._trt.BuilderFlag.DISABLE_TIMING_CACHE)

    def save(self, config: Any, tell: Tell) -> None:
        if self._save:
            self._tactics.save(Path(self._save))


class Tactics:
    """State of a selector: algorithms to use, algorithms to exclude, and the final choices.

    error: why it could not continue, since an exception must not pass through TensorRT.
    """

    def __init__(self, replay: Replay, excluded: Replay) -> None:
        self._replay, self._excluded = replay, excluded
        self.chosen: Replay = {}
        self.error: LayerwiseError | None = None

    def select(self, context: Any, offered: Collection[Any]) -> list[int]:
        """Return indices of the algorithms that may be used for a layer."""
        found = [described(context, algorithm) for algorithm in offered]
        name = context.name
        if name in self._replay:
            allowed = [at for at, entry in enumerate(found) if _same(entry, self._replay[name])]
            what = "its recorded tactic is not among those that TensorRT offers"
        else:
            bad = self._excluded.get(name)
            allowed = [at for at, entry in enumerate(found) if bad is None or not _same(entry, bad)]
            what = "every tactic is excluded"
        if not allowed and found and self.error is None:
            self.error = LayerwiseError(f"layer {shown(name, 120)}: {what}")
        return allowed

    def report(self, contexts: Collection[Any], algorithms: Collection[Any]) -> None:
        for context, algorithm in zip(contexts, algorithms, strict=True):
            self.chosen[context.name] = described(context, algorithm)

    def save(self, path: Path) -> None:
        """Write the choices. LayerwiseError if that fails."""
        try:
            write_named(path, json.dumps({"replay": self.chosen, "polygraphy_class": "TacticReplayData"}, indent=1))
        except OSError as error:
            raise LayerwiseError(f"{shown(str(path))} cannot be written: {error.strerror}") from None


def _same(entry: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(entry[key] == wanted.get(key) for key in ("implementation", "tactic", "inputs", "outputs"))


def make_selector(trt: Any, tactics: Tactics) -> Any:
    """Return an IAlgorithmSelector (10 only) over `tactics`. Keep it until the build is over."""

    class Selector(trt.IAlgorithmSelector):  # type: ignore[misc]
        def select_algorithms(self, context: Any, choices: list[Any]) -> list[int]:
            return tactics.select(context, choices)

        def report_algorithms(self, contexts: list[Any], choices: list[Any]) -> None:
            tactics.report(contexts, choices)

    return Selector()
