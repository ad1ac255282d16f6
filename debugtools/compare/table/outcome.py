"""What a comparison comes to: counts, the first bad layer, the worst one, pass rates per metric and pair."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from layerwise._tool.debugtools.compare.pairing.left_out import compared

Row = dict[str, Any]
Key = tuple[int, tuple[int, ...], str]
_SUBSET = ("iteration", "pair", "i", "node", "op", "tensor", "mode", "max_abs", "max_rel", "rel_l2", "finding", "note")


def row_key(row: Row) -> Key:
    """What identifies a row: iteration, pair, tensor."""
    return row["iteration"], tuple(row["pair"]), row["tensor"]


class Outcome:
    """Takes in the rows as they come."""

    def __init__(self, runners: Sequence[str], pairs: Sequence[tuple[int, int]], metrics: Sequence[str]) -> None:
        self._runners, self._pairs, self._metrics = runners, pairs, metrics
        self.rows = self.failed = 0
        self._first: Row | None = None
        self._worst: Row | None = None
        self._failures: set[tuple[str, tuple[int, ...], int]] = set()
        self._iterations: set[int] = set()
        self._compared = dict.fromkeys(pairs, 0)

    def iteration(self, number: int) -> None:
        """An iteration was run."""
        self._iterations.add(number)

    def add(self, row: Row) -> None:
        """Take in one row."""
        self.rows += 1
        self._iterations.add(row["iteration"])
        self._compared[row["pair"][0], row["pair"][1]] += compared(row)
        if row["passed"] is not False:
            return
        self.failed += 1
        if self._first is None or _order(row) < _order(self._first):
            self._first = row
        if self._worst is None or _severity(row) > _severity(self._worst):
            self._worst = row
        for metric, passed in row["metrics"].items():
            if not passed:
                self._failures.add((metric, tuple(row["pair"]), row["iteration"]))

    def bare(self) -> list[tuple[int, int]]:
        """The pairs of which nothing was compared: for them there is no verdict."""
        return [pair for pair, count in self._compared.items() if not count]

    def result(self, seconds: float) -> dict[str, Any]:
        """The fields of the job's result that rows decide. n_compared: rows that compared something."""
        return {
            "passed": self.failed == 0 and not self.bare(), "n_rows": self.rows,
            "n_compared": sum(self._compared.values()), "n_failed": self.failed,
            "first_bad": _subset(self._first), "worst": _subset(self._worst), "runners": list(self._runners),
            "iterations": len(self._iterations), "summary": list(self._summary()), "seconds": seconds,
        }  # fmt: skip

    def _summary(self) -> Iterable[dict[str, Any]]:
        total = len(self._iterations)
        for metric in self._metrics:
            for pair in self._pairs:
                passed = total - sum((metric, pair, k) in self._failures for k in self._iterations)
                passed = passed if self._compared[pair] else 0
                yield {
                    "metric": metric, "pair": [self._runners[i] for i in pair], "passed": passed, "total": total,
                    "rate": passed / total if total else 0.0, "compared": self._compared[pair],
                }  # fmt: skip


def _order(row: Row) -> tuple[int, int]:
    return row["iteration"], row["i"] if row["i"] >= 0 else 1 << 60


def _severity(row: Row) -> float:
    value = row.get("rel_l2")
    return math.inf if value is None or value != value else float(value)


def _subset(row: Row | None) -> Row | None:
    return None if row is None else {key: row[key] for key in _SUBSET if key in row}
