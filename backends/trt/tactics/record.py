"""Tactics as an editable timing cache has them, in a JSON file that can be read, compared and edited without TensorRT.

    {"layerwise": "tactics", "tensorrt": "11.4.0.106",
     "ops": {"0x1814870c44ff0f8574df6e3dda04cbd7": {"name": "matMul1", "tactic": "0x665ded9abbf88",
             "offered": [{"tactic": "0x665ded9abbf88", "kernel": "sm80_xmma_gemm", "milliseconds": 0.011264}, …]}, …},
     "cache": "base64 of the timing cache"}

`ops` says which tactic each operation is to have; `cache` is what TensorRT needs to know besides.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import MOST, atomic_write, read_file
from layerwise._tool.backends.formats.json_text import check_values
from layerwise._tool.backends.specs import Spec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.logger import Messages

Tell = Callable[[str], None]
_KEY = re.compile(r"0x[0-9a-f]{32}")
_TACTIC = re.compile(r"0x[0-9a-f]{1,16}")


class Offer(Spec, frozen=True):
    """An implementation that was timed. tactic: its hash; milliseconds: None where it could not be timed."""

    tactic: str
    kernel: str = ""
    milliseconds: float | None = None


class Op(Spec, frozen=True):
    """An operation of the network. tactic: hash of the one it has; offered: all that were timed, fastest first."""

    name: str
    tactic: str
    offered: list[Offer] = []

    @property
    def kernel(self) -> str:
        """The kernel of the tactic it has, "" where the log did not say."""
        return next((offer.kernel for offer in self.offered if offer.tactic == self.tactic), "")


class Record(Spec, frozen=True):
    """What one build chose, or is to choose. ops: by key; cache: a serialised timing cache, of this TensorRT."""

    layerwise: Literal["tactics"]
    tensorrt: str = ""
    ops: dict[str, Op] = {}
    cache: bytes = b""


def decode_record(data: bytes) -> Record | None:
    """The record that a file's bytes hold; None if they hold none."""
    try:
        found = msgspec.json.decode(data, type=Record)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    hashes = [tactic for op in found.ops.values() for tactic in (op.tactic, *(offer.tactic for offer in op.offered))]
    return found if all(map(_KEY.fullmatch, found.ops)) and all(map(_TACTIC.fullmatch, hashes)) else None


def read_bounded(path: Path) -> bytes:
    """A file's bytes. BadFile if it cannot be read or is too large for tactics, or for what is JSON in it."""
    data = read_file(path, MOST)
    if data[:1] in (b"{", b"["):
        check_values(path, data)
    return data


def save_record(record: Record, path: Path) -> None:
    """Write a record, whole or not at all. LayerwiseError if that cannot be."""
    try:
        atomic_write(path, msgspec.json.format(msgspec.json.encode(record), indent=1))
    except OSError as error:
        raise LayerwiseError(f"{shown(str(path))} cannot be written: {error.strerror}") from None


class Recording:
    """What a build's options say of tactics: here, nothing.

    gives_cache: the timing cache is its own. error: why a build could not go on.
    """

    wanted = gives_cache = False
    error: LayerwiseError | None = None

    def attach(self, config: Any, messages: Messages) -> None:
        """Have the builder's choices recorded, replayed or narrowed."""

    def again(self, config: Any) -> bool:
        """Whether to build once more, now that it is known what the builder chooses."""
        return False

    def save(self, config: Any, tell: Tell) -> None:
        """Write what was chosen, where the options say so."""
