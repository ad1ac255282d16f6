"""Timing caches: TensorRT's measurements, kept so that later builds are fast and choose the same tactics."""

from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_write, read_file
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.logger import Messages


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
        make_folder(file.parent)
        atomic_write(file, bytes(memoryview(cache.serialize())))
    except OSError as error:
        raise LayerwiseError(f"{shown(str(file))} cannot be written: {error.strerror}") from None
