"""Recording and replaying which implementation TensorRT chooses for each layer.

On 10 by an algorithm selector, in Polygraphy's replay JSON; on 11, which has none, in an editable timing cache that is
replayed with an error for every layer that it does not hold.
"""

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from backends.errors import BadFile, LayerwiseError, UsageError
from backends.files import atomic_write
from backends.text import shown
from backends.trt.capabilities import able, lacks
from backends.trt.logger import Messages
from backends.trt.options import TrtOptions
from backends.trt.timing import save_timing_cache, use_timing_cache

Replay = dict[str, dict[str, Any]]


def described(context: Any, algorithm: Any) -> dict[str, Any]:
    """An IAlgorithm as Polygraphy's replay writes it."""
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


def read_replay(path: Path) -> Replay:
    """Layer -> its algorithm, of a replay file. BadFile if it is none."""
    try:
        found = json.loads(path.read_bytes())["replay"]
        if all(isinstance(entry["tactic"], int) for entry in found.values()):
            return dict(found)
    except OSError as error:
        raise BadFile(path, error.strerror or str(error)) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise BadFile(path, "not a tactic replay")


class Tactics:
    """What a selector knows: algorithms to use, those to leave out, and those that were chosen in the end.

    error: why it could not go on; an exception must not pass through TensorRT.
    """

    def __init__(self, replay: Replay, excluded: Replay) -> None:
        self._replay, self._excluded = replay, excluded
        self.chosen: Replay = {}
        self.error: LayerwiseError | None = None

    def select(self, context: Any, offered: Collection[Any]) -> list[int]:
        """Positions of the algorithms that may be used for a layer."""
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
        """Write what was chosen. LayerwiseError if that cannot be."""
        try:
            atomic_write(path, json.dumps({"replay": self.chosen, "polygraphy_class": "TacticReplayData"}, indent=1))
        except OSError as error:
            raise LayerwiseError(f"{shown(str(path))} cannot be written: {error.strerror}") from None


def _same(entry: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(entry[key] == wanted.get(key) for key in ("implementation", "tactic", "inputs", "outputs"))


def make_selector(trt: Any, tactics: Tactics) -> Any:
    """An IAlgorithmSelector (10 only) over `tactics`. Keep it until the build is over."""

    class Selector(trt.IAlgorithmSelector):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IAlgorithmSelector.__init__(self)

        def select_algorithms(self, context: Any, choices: list[Any]) -> list[int]:
            return tactics.select(context, choices)

        def report_algorithms(self, contexts: list[Any], choices: list[Any]) -> None:
            tactics.report(contexts, choices)

    return Selector()


class Recording:
    """What a build's options say of tactics. wanted: they say anything."""

    def __init__(self, trt: Any, options: TrtOptions) -> None:
        self._trt, self._options = trt, options
        self.wanted = bool(options.save_tactics or options.load_tactics or options.exclude_tactics)
        self._tactics = Tactics({}, {})
        self._selector: Any = None

    @property
    def error(self) -> LayerwiseError | None:
        """Why the build could not go on."""
        return self._tactics.error

    def attach(self, config: Any, messages: Messages) -> None:
        """Have the builder's choices recorded, replayed or narrowed. UsageError for what this version cannot do."""
        if not self.wanted:
            return
        if able(self._trt, "algorithm_selector"):
            named = (self._options.load_tactics, self._options.exclude_tactics)
            self._tactics = Tactics(*(read_replay(Path(name)) if name else {} for name in named))
            config.algorithm_selector = self._selector = make_selector(self._trt, self._tactics)
        else:
            self._use_cache(config, messages)

    def _use_cache(self, config: Any, messages: Messages) -> None:
        if self._options.exclude_tactics:
            raise UsageError(f"--exclude-tactics: {lacks(self._trt, 'algorithm_selector')}")
        config.set_flag(self._trt.BuilderFlag.EDITABLE_TIMING_CACHE)
        if self._options.load_tactics:
            config.set_flag(self._trt.BuilderFlag.ERROR_ON_TIMING_CACHE_MISS)
            cache = Path(self._options.load_tactics)
            use_timing_cache(config, [cache], messages, cache)

    def save(self, config: Any, tell: Callable[[str], None]) -> None:
        """Write what was chosen, where the options say so."""
        if not self._options.save_tactics:
            return
        path = Path(self._options.save_tactics)
        if self._selector is not None:
            self._tactics.save(path)
            return
        path.unlink(missing_ok=True)
        save_timing_cache(config, path)
        tell(f"{shown(str(path))} is an editable timing cache: {lacks(self._trt, 'algorithm_selector')}.")
