"""Tactics through the editable timing cache: the only way on TensorRT 11, available on 10.9 and later.

TensorRT's log of tactic timings is the only place that names tactics. Source: NVIDIA's sampleEditableTimingCache. The
format has no version, so columns are found by their titles:

    Autotuning op matMul1(key: 0x1814870c44ff0f8574df6e3dda04cbd7):
    Sorted table of all evaluated tactics:
    tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter
       3, 0.0112640, 1.00000, 0.50673, sm80_xmma_gemm_f32f32, 0x665ded9abbf88,
    The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88,  0.011264
"""

import re
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.capabilities import able, lacks
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.backends.trt.options import TrtOptions
from layerwise._tool.backends.trt.tactics.record import (
    Offer,
    Op,
    Recording,
    TacticRecord,
    Tell,
    give_timing_cache,
    save_record,
)

_OP = re.compile(r"Autotuning op (.*)\(key: (0x[0-9a-fA-F]{32})\)")
_CHOSEN = re.compile(r"\(tactic hash, cost\(in ms\)\): *(0x[0-9a-fA-F]{1,16})(?![0-9a-fA-F])")
_COST, _KERNEL, _TACTIC = "cost(in ms)", "kernel_name", "tactic_hash"
_HASH = re.compile(r"0x[0-9a-fA-F]{1,16}")
_LONGEST = 8192
_ROUNDS = 5


class Autotuning:
    """ops: by key, each with the tactic that was chosen last."""

    def __init__(self) -> None:
        self.ops: dict[str, Op] = {}
        self._key = self._name = ""
        self._columns: list[str] = []
        self._offered: list[Offer] = []

    def hear(self, text: str) -> None:
        """Receive one log message."""
        for line in text.splitlines():
            self._line(line[:_LONGEST])

    def _line(self, line: str) -> None:
        begun, chosen = _OP.search(line), _CHOSEN.search(line)
        if begun:
            self._name, self._key = begun[1].strip(), begun[2].lower()
            self._columns, self._offered = [], []
        elif not self._key:
            return
        elif chosen:
            self.ops[self._key] = Op(name=self._name, tactic=chosen[1].lower(), offered=self._offered)
            self._key = ""
        elif _KERNEL in line and _TACTIC in line:
            self._columns = [title.strip() for title in line.split(",")]
        elif self._columns:
            self._row([cell.strip() for cell in line.split(",")])

    def _row(self, cells: list[str]) -> None:
        row = dict(zip(self._columns, cells, strict=False))
        tactic = row.get(_TACTIC, "")
        if not _HASH.fullmatch(tactic):
            return
        try:
            cost = float(row.get(_COST, ""))
        except ValueError:
            return
        known = cost if isfinite(cost) else None
        self._offered.append(Offer(tactic=tactic.lower(), kernel=row.get(_KERNEL, ""), milliseconds=known))


class CacheRecording(Recording):
    """Reads choices from the log and the cache, and forces choices by editing the cache.

    A replay is strict: an operation that is missing in the cache ends the build.
    """

    wanted = True

    def __init__(
        self, trt: Any, options: TrtOptions, loaded: TacticRecord | None, excluded: TacticRecord | None
    ) -> None:
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
        save_record(TacticRecord(layerwise="tactics", tensorrt=self._trt.__version__, ops=ops, cache=data), path)
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
