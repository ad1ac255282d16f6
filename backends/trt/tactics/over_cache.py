"""Tactics through the editable timing cache: the only way on TensorRT 11, available on 10.9 and later."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.capabilities import able, lacks
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.backends.trt.options import TrtOptions
from layerwise._tool.backends.trt.tactics.autotuning import Autotuning
from layerwise._tool.backends.trt.tactics.record import Op, Record, Recording, Tell, save_record
from layerwise._tool.backends.trt.tactics.timing_cache import give_timing_cache

_ROUNDS = 5


class CacheRecording(Recording):
    """Reads choices from the log and the cache, and forces choices by editing the cache.

    A replay is strict: an operation that is missing in the cache ends the build.
    """

    wanted = True

    def __init__(self, trt: Any, options: TrtOptions, loaded: Record | None, excluded: Record | None) -> None:
        self._trt, self._options = trt, options
        self._loaded, self._excluded = loaded, excluded
        self.gives_cache = loaded is not None
        self._heard = Autotuning()
        self._listeners: list[Callable[[str], None]] = []
        self._rounds = 0

    def attach(self, config: Any, messages: Messages) -> None:
        flags = self._trt.BuilderFlag
        config.set_flag(flags.EDITABLE_TIMING_CACHE)
        self._listeners = messages.listeners
        self._listeners.append(self._heard.hear)
        if self._loaded is None:
            return
        config.set_flag(flags.ERROR_ON_TIMING_CACHE_MISS)
        give_timing_cache(config, self._loaded.cache, Path(str(self._options.load_tactics)), messages)
        cache = config.get_timing_cache()
        for key, op in self._loaded.ops.items():
            if not self._set(cache, key, op):
                raise LayerwiseError(f"layer {shown(op.name, 120)}: the timing cache has no tactic to replace by "
                                     f"{op.tactic}")  # fmt: skip

    def again(self, config: Any) -> bool:
        """Replace excluded tactics by the fastest that are not excluded; return whether there were any."""
        excluded = self._excluded.ops if self._excluded else {}
        cache = config.get_timing_cache()
        wrong = {key: op for key, op in self._ops().items() if key in excluded and op.tactic == excluded[key].tactic}
        if wrong and self._rounds == _ROUNDS:
            raise LayerwiseError(f"TensorRT keeps choosing tactics that are excluded: {_names(wrong)}")
        self._rounds += 1
        for key, op in wrong.items():
            other = next((offer.tactic for offer in op.offered if offer.tactic != op.tactic), None)
            if other is None:
                raise LayerwiseError(f"layer {shown(op.name, 120)}: every tactic is excluded")
            self._heard.ops[key] = msgspec.structs.replace(op, tactic=other)
            self._set(cache, key, self._heard.ops[key])
        return bool(wrong)

    def save(self, config: Any, tell: Tell) -> None:
        if self._heard.hear in self._listeners:
            self._listeners.remove(self._heard.hear)
        if not self._options.save_tactics:
            return
        path = Path(self._options.save_tactics)
        cache = config.get_timing_cache()
        ops = {key: self._chosen(cache, key, op) for key, op in self._ops().items()}
        data = bytes(memoryview(cache.serialize()))
        save_record(Record(layerwise="tactics", tensorrt=self._trt.__version__, ops=ops, cache=data), path)
        if not able(self._trt, "algorithm_selector"):
            tell(f"{shown(str(path))} holds the tactics of an editable timing cache: "
                 f"{lacks(self._trt, 'algorithm_selector')}.")  # fmt: skip
        if not ops:
            tell("TensorRT's log names no tactics: the record can be replayed, but not read or compared.")

    def _ops(self) -> dict[str, Op]:
        return {**(self._loaded.ops if self._loaded else {}), **self._heard.ops}

    def _set(self, cache: Any, key: str, op: Op) -> bool:
        """Force an operation's tactic; False if the cache does not know it."""
        known = {offer.tactic: offer.milliseconds for offer in op.offered}
        value = self._trt.TimingCacheValue(int(op.tactic, 16), known.get(op.tactic) or 1.0)
        return bool(cache.update(self._trt.TimingCacheKey.parse(key), value))

    def _chosen(self, cache: Any, key: str, op: Op) -> Op:
        """Return the final tactics of the cache; for operations that it lacks, those from the log."""
        value = cache.query(self._trt.TimingCacheKey.parse(key))
        tactic = f"0x{value.tacticHash:x}" if value.timingMSec == value.timingMSec else op.tactic
        return msgspec.structs.replace(op, tactic=tactic)


def _names(ops: dict[str, Op]) -> str:
    return ", ".join(shown(op.name, 80) for op in list(ops.values())[:5])
