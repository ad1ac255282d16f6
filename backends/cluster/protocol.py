"""What runs texts somewhere: the same for threads of this process and for a dask cluster."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct


class Ended(Struct, frozen=True):
    """A text that has been run, or not. text: the answer; None: there is none, and error says why.

    lost: whoever ran it, or the way to it, is gone; it may be started again.
    """

    name: str
    text: str | None = None
    error: str = ""
    lost: bool = False


class Runs(Protocol):
    """Runs texts. Made, used and closed by one thread."""

    def slots(self, gpu: bool) -> int:
        """How many may run at a time (gpu: of those that ask for a GPU)."""
        ...

    def versions(self) -> Mapping[str, Mapping[str, str]]:
        """What computes, by the name of who would run it. Raises LayerwiseError."""
        ...

    def start(self, name: str, text: str, gpu: bool) -> None:
        """Have a text run; `wait` tells how it ended. Raises LayerwiseError."""
        ...

    def wait(self, seconds: float) -> Ended | None:
        """The next one that has ended, None if none does within so many seconds."""
        ...

    def close(self) -> None:
        """Start no more; what runs elsewhere may go on."""
        ...
