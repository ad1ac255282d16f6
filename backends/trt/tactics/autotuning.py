"""Parses TensorRT's log of tactic timings for an editable timing cache, the only place that names tactics.

Source: NVIDIA's sampleEditableTimingCache. The format has no version, so columns are found by their titles:

    Autotuning op matMul1(key: 0x1814870c44ff0f8574df6e3dda04cbd7):
    Sorted table of all evaluated tactics:
    tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter
       3, 0.0112640, 1.00000, 0.50673, sm80_xmma_gemm_f32f32, 0x665ded9abbf88,
    The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88,  0.011264
"""

import re
from math import isfinite

from layerwise._tool.backends.trt.tactics.record import Offer, Op

_OP = re.compile(r"Autotuning op (.*)\(key: (0x[0-9a-fA-F]{32})\)")
_CHOSEN = re.compile(r"\(tactic hash, cost\(in ms\)\): *(0x[0-9a-fA-F]{1,16})(?![0-9a-fA-F])")
_COST, _KERNEL, _TACTIC = "cost(in ms)", "kernel_name", "tactic_hash"
_HASH = re.compile(r"0x[0-9a-fA-F]{1,16}")
_LONGEST = 8192


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
