"""Objects over queues between processes; large ones are compressed."""

import sys
import zlib
from typing import Any

from layerwise.logger import G_LOGGER

PIPE_MAX_SEND_BYTES = 1 << 31
"""Bytes that may be sent over a queue at once."""


class Compressed:
    """Compressed bytes."""

    def __init__(self, cobj: bytes) -> None:
        self.bytes = cobj


def is_compressed(obj: Any) -> bool:
    """Whether it is what `compress` returns."""
    return isinstance(obj, Compressed)


def compress(obj: bytes) -> Compressed:
    """Compress bytes."""
    return Compressed(zlib.compress(obj))


def decompress(compressed: Compressed) -> bytes:
    """The bytes that were compressed."""
    return zlib.decompress(compressed.bytes)


def send_on_queue(queue: Any, obj: Any) -> None:
    """Put an object on a queue, compressed if it is too large as it is."""
    if sys.getsizeof(obj) > PIPE_MAX_SEND_BYTES:
        G_LOGGER.warning(f"An object of {sys.getsizeof(obj)} bytes is compressed to be sent over a queue")
        obj = compress(obj)
    assert sys.getsizeof(obj) <= PIPE_MAX_SEND_BYTES
    queue.put(obj)


def try_send_on_queue(queue: Any, obj: Any) -> None:
    """Put an object on a queue; None, with a warning, if that cannot be done."""
    try:
        send_on_queue(queue, obj)
    except Exception as error:
        G_LOGGER.warning(f"Could not send object on queue: {error}\nSending None instead.")
        queue.put(None)


def receive_on_queue(queue: Any, timeout: float | None = None) -> Any:
    """The next object of a queue. queue.Empty after so many seconds."""
    found = queue.get(block=True, timeout=timeout)
    return decompress(found) if is_compressed(found) else found


def try_receive_on_queue(queue: Any, timeout: float | None = None) -> Any:
    """The next object of a queue; None, with a warning, if there is none in time."""
    try:
        found = receive_on_queue(queue, timeout)
    except Exception as error:
        G_LOGGER.warning(f"Could not receive on queue: {error}")
        return None
    if found is None:
        G_LOGGER.warning("Received None on the queue: the object could not be sent, it seems")
    return found
