"""Tactics of an editable timing cache as a JSON file that can be read, compared and edited without TensorRT.

    {"layerwise": "tactics", "tensorrt": "11.4.0.106",
     "ops": {"0x1814870c44ff0f8574df6e3dda04cbd7": {"name": "matMul1", "tactic": "0x665ded9abbf88",
             "offered": [{"tactic": "0x665ded9abbf88", "kernel": "sm80_xmma_gemm", "milliseconds": 0.011264}, …]}, …},
     "cache": "base64 of the timing cache"}

`ops` sets each operation's tactic; `cache` is what TensorRT needs in addition.
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
    """A tactic that was timed. tactic: its hash; milliseconds: None if it could not be timed."""

    tactic: str
    kernel: str = ""
    milliseconds: float | None = None


class Op(Spec, frozen=True):
    """An operation of the network. tactic: hash of the chosen one; offered: all that were timed, fastest first."""

    name: str
    tactic: str
    offered: list[Offer] = []

    @property
    def kernel(self) -> str:
        """Return the kernel of the chosen tactic, "" if the log did not name it."""
        return next((offer.kernel for offer in self.offered if offer.tactic == self.tactic), "")


class Record(Spec, frozen=True):
    """Tactics that one build chose, or is to use. ops: by key; cache: a serialised timing cache, for this TensorRT."""

    layerwise: Literal["tactics"]
    tensorrt: str = ""
    ops: dict[str, Op] = {}
    cache: bytes = b""


def decode_record(data: bytes) -> Record | None:
    """Return the record in a file's bytes; None if they are not one."""
    try:
        found = msgspec.json.decode(data, type=Record)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    hashes = [tactic for op in found.ops.values() for tactic in (op.tactic, *(offer.tactic for offer in op.offered))]
    return found if all(map(_KEY.fullmatch, found.ops)) and all(map(_TACTIC.fullmatch, hashes)) else None


def read_bounded(path: Path) -> bytes:
    """Return a file's bytes. BadFile if it cannot be read or is too large for tactics, or for the JSON in it."""
    data = read_file(path, MOST)
    if data[:1] in (b"{", b"["):
        check_values(path, data)
    return data


def save_record(record: Record, path: Path) -> None:
    """Write a record atomically. LayerwiseError if that fails."""
    try:
        atomic_write(path, msgspec.json.format(msgspec.json.encode(record), indent=1))
    except OSError as error:
        raise LayerwiseError(f"{shown(str(path))} cannot be written: {error.strerror}") from None


class Recording:
    """The handling of tactics that the options ask for; this one does nothing.

    gives_cache: it provides the timing cache. error: why a build could not continue.
    """

    wanted = gives_cache = False
    error: LayerwiseError | None = None

    def attach(self, config: Any, messages: Messages) -> None:
        """Set up recording, replaying or excluding on the builder."""

    def again(self, config: Any) -> bool:
        """Return whether to build once more, given the builder's choices."""
        return False

    def save(self, config: Any, tell: Tell) -> None:
        """Write the choices if the options ask for it."""
