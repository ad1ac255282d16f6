"""What Python 3.10 lacks."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import hashlib

__all__ = ["StrEnum", "file_digest", "running", "timeout"]

_RUN = "import sys; del sys.path[0], sys.argv[0]; import runpy; runpy.run_module(sys.argv[0], None, '__main__', True)"

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:

    class StrEnum(str, Enum):
        """Members are strings, and are formatted as such."""

        __str__ = str.__str__
        __format__ = str.__format__


def running(module: str) -> list[str]:
    """`python -P -m MODULE`: without the current folder on the module's path."""
    if sys.version_info >= (3, 11):
        return [sys.executable, "-P", "-m", module]
    else:
        return [sys.executable, "-c", _RUN, module]


def file_digest(stream: BinaryIO) -> "hashlib.blake2b":
    """`hashlib.file_digest` by BLAKE2b, of what is left of a stream."""
    from hashlib import blake2b

    digest = blake2b()
    while block := stream.read(1 << 20):
        digest.update(block)
    return digest


@asynccontextmanager
async def timeout(seconds: float | None) -> AsyncIterator[None]:
    """`asyncio.timeout`: TimeoutError if the block takes longer; None: it may take any time."""
    import asyncio

    if sys.version_info >= (3, 11):
        async with asyncio.timeout(seconds):
            yield
    else:
        task, over = asyncio.current_task(), []

        def end() -> None:
            over.append(True)
            task.cancel()

        waiting = None if seconds is None else asyncio.get_running_loop().call_later(seconds, end)
        try:
            yield
        except asyncio.CancelledError:
            if over:
                raise TimeoutError from None
            raise
        finally:
            if waiting is not None:
                waiting.cancel()
