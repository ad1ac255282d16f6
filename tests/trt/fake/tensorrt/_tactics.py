"""Which implementation each layer gets in a build: from the selector (10), the timing cache, or the draw."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _faults
from ._classes import behaves, new
from ._recording import api
from ._timing import CANDIDATES, tactic_of
from ._values import dims, say


class BuildFailed(Exception):
    """The build ends without an engine."""


@dataclass
class Choice:
    """One layer's implementation."""

    layer: str
    key: str
    candidate: int
    milliseconds: float

    @property
    def tactic(self) -> int:
        """The hash that the timing cache records."""
        return tactic_of(self.key, self.candidate)


def key_of(layer: Any) -> str:
    """Type, name-independent shape and types of a layer, hashed as the timing cache shows keys: 0x and 32 digits."""
    facts = [layer.kind, layer.name, [(t._typed()[0].name, t._typed()[1]) for t in layer.outputs]]
    return "0x" + hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def choose(network: Any, config: Any, logger: Any) -> list[Choice]:
    """One choice a layer; the timing cache is filled.

    Raises:
        BuildFailed: the cache names a tactic that does not exist, or misses one where that is an error.
    """
    entries = config._cache._entries if config._cache is not None else {}
    if config._has("DISABLE_TIMING_CACHE"):
        entries = {}
    choices = [_choice(layer, entries, config, logger) for layer in network._layers]
    selector = stored_selector(config)
    if selector is not None:
        choices = _selected(network, choices, selector)
    for choice in choices:
        entries.setdefault(choice.key, [choice.tactic, choice.milliseconds])
    return choices


def stored_selector(config: Any) -> Any:
    """The algorithm selector of the config; None on 11, which has none."""
    return config._values.get("algorithm_selector") if "IAlgorithmSelector" in api()["classes"] else None


def _choice(layer: Any, entries: dict[str, Any], config: Any, logger: Any) -> Choice:
    key = key_of(layer)
    if key in entries and config._values.get("builder_optimization_level") != 0:
        tactic, milliseconds = entries[key]
        for at in range(CANDIDATES):
            if tactic_of(key, at) == tactic:
                return Choice(layer.name, key, at, milliseconds)
        raise BuildFailed(f"Could not find any implementation for node {layer.name}: 0x{tactic:016x} is unusable")
    if config._has("ERROR_ON_TIMING_CACHE_MISS"):
        raise BuildFailed(f"Timing cache miss for node {layer.name} with key {key}")
    choice = Choice(layer.name, key, _draw(layer.name), round(float(_faults.random().uniform(0.01, 0.1)), 6))
    if config._has("EDITABLE_TIMING_CACHE") and not _faults.faults().get("no_tactics_log"):
        _tell(layer, choice, logger)
    return choice


def _tell(layer: Any, choice: Choice, logger: Any) -> None:
    """What the real one logs of an operation that it times, as sampleEditableTimingCache shows it."""
    say(logger, "VERBOSE", f"Autotuning op {layer.name}(key: {choice.key}):")
    say(logger, "VERBOSE", "Sorted table of all evaluated tactics:")
    say(logger, "VERBOSE", "tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, "
        "tactic_hash, tunable_parameter")  # fmt: skip
    others = [at for at in range(CANDIDATES) if at != choice.candidate]
    for place, at in enumerate([choice.candidate, *others]):
        ratio = 1 + 0.05 * place
        say(logger, "VERBOSE", f"   {at}, {choice.milliseconds * ratio:.7f}, {ratio:.5f}, 0.5, "
            f"fake_{layer.kind.lower()}_{at}, 0x{tactic_of(choice.key, at):x},")  # fmt: skip
    say(logger, "VERBOSE", f"The selected tactic is (tactic hash, cost(in ms)):0x{choice.tactic:x}, "
        f" {choice.milliseconds}")  # fmt: skip
    say(logger, "VERBOSE", f"Writing the best tactic (0x{choice.tactic:x}) to cache")


def _draw(name: str) -> int:
    fault = _faults.faults().get("bad_tactic") or {}
    chance = _faults.random().random()
    if _faults.matches(name, fault.get("layers")) and chance < fault.get("probability", 1.0):
        return CANDIDATES - 1
    return int(_faults.random().integers(0, CANDIDATES - 1))


@behaves("IAlgorithmVariant")
class _Variant:
    implementation = property(lambda self: self._implementation)
    tactic = property(lambda self: self._tactic)


@behaves("IAlgorithmIOInfo")
class _IOInfo:
    dtype = property(lambda self: self._dtype)
    strides = property(lambda self: dims(self._strides))
    vectorized_dim = property(lambda self: -1)
    components_per_element = property(lambda self: 1)


@behaves("IAlgorithm")
class _Algorithm:
    _infos: list[Any]

    algorithm_variant = property(lambda self: self._variant)
    timing_msec = property(lambda self: self._milliseconds)
    workspace_size = property(lambda self: 0)

    def get_algorithm_io_info(self, index: int) -> Any:
        return self._infos[index]


@behaves("IAlgorithmContext")
class _Context:
    _layer: Any

    name = property(lambda self: self._layer.name)
    num_inputs = property(lambda self: len(self._layer.inputs))
    num_outputs = property(lambda self: len(self._layer.outputs))

    def get_shape(self, index: int) -> list[Any]:
        shape = [abs(size) for size in (self._layer.inputs + self._layer.outputs)[index]._typed()[1]]
        return [dims(shape)] * 3


def _selected(network: Any, choices: list[Choice], selector: Any) -> list[Choice]:
    contexts, picked = [], []
    for layer, choice in zip(network._layers, choices, strict=True):
        context = new("IAlgorithmContext", _layer=layer)
        offered = [_algorithm(layer, choice, at) for at in range(CANDIDATES)]
        allowed = list(selector.select_algorithms(context, offered))
        if not allowed:
            raise BuildFailed(f"No algorithm was selected for {layer.name}")
        at = choice.candidate if choice.candidate in allowed else allowed[0]
        contexts.append(context)
        picked.append((offered[at], Choice(choice.layer, choice.key, at, choice.milliseconds)))
    selector.report_algorithms(contexts, [algorithm for algorithm, _choice in picked])
    return [choice for _algorithm, choice in picked]


def _algorithm(layer: Any, choice: Choice, at: int) -> Any:
    variant = new("IAlgorithmVariant", _implementation=0x80000000 | at, _tactic=tactic_of(choice.key, at) - (1 << 63))
    infos = [new("IAlgorithmIOInfo", _dtype=t._typed()[0], _strides=_strides(t._typed()[1]))
             for t in layer.inputs + layer.outputs]  # fmt: skip
    return new("IAlgorithm", _variant=variant, _infos=infos, _milliseconds=choice.milliseconds + at)


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [int(np.prod(np.abs(shape[at + 1 :]), dtype=np.int64)) for at in range(len(shape))]
