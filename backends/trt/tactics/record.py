"""Tactics as files: timing caches, and a JSON file that can be read, compared and edited without TensorRT.

    {"layerwise": "tactics", "tensorrt": "11.4.0.106",
     "ops": {"0x1814870c44ff0f8574df6e3dda04cbd7": {"name": "matMul1", "tactic": "0x665ded9abbf88",
             "offered": [{"tactic": "0x665ded9abbf88", "kernel": "sm80_xmma_gemm", "milliseconds": 0.011264}, …]}, …},
     "cache": "base64 of the timing cache"}

`ops` sets each operation's tactic; `cache` is what TensorRT needs in addition. Timing caches are TensorRT's
measurements, kept so that later builds are fast and choose the same tactics.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.filesystem.files import MOST, read_file, write_named
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


class TacticRecord(Spec, frozen=True):
    """Tactics that one build chose, or is to use. ops: by key; cache: a serialised timing cache, for this TensorRT."""

    layerwise: Literal["tactics"]
    tensorrt: str = ""
    ops: dict[str, Op] = {}
    cache: bytes = b""


def decode_record(data: bytes) -> TacticRecord | None:
    """Return the record in a file's bytes; None if they are not one."""
    try:
        found = msgspec.json.decode(data, type=TacticRecord)
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


def save_record(record: TacticRecord, path: Path) -> None:
    """Write a record atomically. LayerwiseError if that fails."""
    try:
        write_named(path, msgspec.json.format(msgspec.json.encode(record), indent=1))
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


def use_timing_cache(config: Any, files: list[Path], messages: Messages, required: Path | None) -> None:
    """Give a builder config one timing cache, merged from those of these files that exist.

    required: the one a user named. BadFile if it is not a cache of this TensorRT and GPU; other invalid ones are
    ignored.
    """
    whole = config.create_timing_cache(b"")
    for file in files:
        if not file.is_file():
            continue
        messages.reason("")
        found = config.create_timing_cache(read_file(file))
        if (found is None or not whole.combine(found, False)) and file == required:
            raise BadFile(file, f"not a timing cache of this TensorRT and GPU: {shown(messages.reason(''), 300)}")
    if not config.set_timing_cache(whole, False):
        raise LayerwiseError(f"TensorRT refuses the timing cache: {messages.reason('it says no more')}")


def give_timing_cache(config: Any, data: bytes, source: Path, messages: Messages) -> None:
    """Give a builder config the timing cache in these bytes, from `source`. BadFile if it is not for this GPU."""
    messages.reason("")
    cache = config.create_timing_cache(data) if data else None
    if cache is None or not config.set_timing_cache(cache, False):
        reason = shown(messages.reason("it cannot be read"), 300)
        raise BadFile(source, f"not a tactic replay, and no timing cache of this TensorRT and GPU: {reason}")


def save_timing_cache(config: Any, file: Path) -> None:
    """Write the config's cache, merged with the file's previous content. LayerwiseError if that fails."""
    cache = config.get_timing_cache()
    if cache is None:
        return
    try:
        if file.is_file():
            before = config.create_timing_cache(read_file(file))
            if before is not None:
                cache.combine(before, False)
        write_named(file, bytes(memoryview(cache.serialize())))
    except OSError as error:
        raise LayerwiseError(f"{shown(str(file))} cannot be written: {error.strerror}") from None
