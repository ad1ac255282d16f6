"""The tests that a filter of the Errors screen is made of, each over whole columns at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from layerwise._tool.tui.state.error_table import FAILED, PASSED, UNKNOWN, ErrorTable

Mask = npt.NDArray[np.bool_]


class Test(Protocol):
    """A node of a parsed filter."""

    def mask(self, table: ErrorTable) -> Mask:
        """Return which rows of the table pass."""


@dataclass(frozen=True)
class Both:
    parts: tuple[Test, ...]

    def mask(self, table: ErrorTable) -> Mask:
        result = np.ones(len(table), bool)
        for part in self.parts:
            result &= part.mask(table)
        return result


@dataclass(frozen=True)
class Either:
    parts: tuple[Test, ...]

    def mask(self, table: ErrorTable) -> Mask:
        result = np.zeros(len(table), bool)
        for part in self.parts:
            result |= part.mask(table)
        return result


@dataclass(frozen=True)
class Not:
    part: Test

    def mask(self, table: ErrorTable) -> Mask:
        return ~self.part.mask(table)


@dataclass(frozen=True)
class Flag:
    name: str

    def mask(self, table: ErrorTable) -> Mask:
        if self.name == "found":
            return table.found()
        if self.name == "suspect":
            return np.asarray(table.numbers("suspect") == 1)
        wanted = {"failed": FAILED, "passed": PASSED, "unknown": UNKNOWN}[self.name]
        return np.asarray(table.verdicts() == wanted)


@dataclass(frozen=True)
class Number:
    column: str
    sign: str
    value: float

    def mask(self, table: ErrorTable) -> Mask:
        return SIGNS[self.sign](table.numbers(self.column), self.value)


@dataclass(frozen=True)
class Label:
    column: str
    sign: str
    value: str

    def mask(self, table: ErrorTable) -> Mask:
        codes, names = table.labels(self.column)
        wanted = np.array([_text_test(name, self.sign, self.value) for name in names], bool)
        return wanted[codes] if len(names) else np.zeros(0, bool)


@dataclass(frozen=True)
class Name:
    field: str
    sign: str
    value: str

    def mask(self, table: ErrorTable) -> Mask:
        names = table.nodes if self.field == "node" else table.tensors
        hits = (_text_test(name, self.sign, self.value) for name in names)
        return np.fromiter(hits, bool, len(names))


SIGNS: dict[str, Callable[[npt.NDArray[np.float64], float], Mask]] = {
    "==": lambda column, value: column == value,
    "=": lambda column, value: column == value,
    "!=": lambda column, value: column != value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
}


def _text_test(text: str, sign: str, value: str) -> bool:
    text, value = text.lower(), value.lower()
    if sign in ("==", "="):
        return text == value
    return text != value if sign == "!=" else value in text
