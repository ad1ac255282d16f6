"""The recorded API that this fake is built from: version by LAYERWISE_FAKE_TRT (10 or 11), signatures parsed."""

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).resolve().parents[2] / "recorded"


@dataclass(frozen=True)
class Parameter:
    """One recorded argument; `default` is its text, None where it is mandatory."""

    name: str
    type: str
    default: str | None


@dataclass(frozen=True)
class Signature:
    """One recorded overload."""

    parameters: tuple[Parameter, ...]
    returns: str
    text: str


def version() -> int:
    """The major version asked for."""
    major = int(os.environ.get("LAYERWISE_FAKE_TRT", "11"))
    if major not in (10, 11):
        raise ImportError(f"LAYERWISE_FAKE_TRT is {major}: the fake knows 10 and 11")
    return major


@cache
def api() -> dict[str, Any]:
    """The recording of the version asked for."""
    text = (RECORDED / f"api_{version()}.json").read_text(encoding="utf-8")
    recording: dict[str, Any] = json.loads(text)
    return recording


def split(text: str) -> list[str]:
    """Split at the commas that are outside brackets and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for at, char in enumerate(text):
        quoted ^= char == "'"
        depth += (char in "[(<") - (char in "])>")
        if char == "," and not depth and not quoted:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


@cache
def signature(text: str) -> Signature:
    """Parse one recorded overload: "(a: int, b: Dims = None) -> ITensor"."""
    inside, _, returns = text.rpartition(" -> ")
    parameters = []
    for part in split(inside.strip()[1:-1]):
        declared, _, default = part.partition(" = ")
        name, _, kind = declared.partition(": ")
        parameters.append(Parameter(name, kind, default or None))
    return Signature(tuple(parameters), returns, text)
