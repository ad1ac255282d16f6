"""A command as it is sent to who runs it, and what comes back."""

from msgspec import Struct

from layerwise._tool.backends.specs import Spec


class AskedCommand(Spec, frozen=True):
    """A command without a shell. folder: where it runs, seen by all machines; what it prints goes to stdout.txt and
    stderr.txt in the folder above. environment: over that of who runs it. timeout: seconds.

    stop: a file that says, once it is there, that nobody waits for it any more. asker: the lock that who asks holds as
    long as it lives. versions: those that whoever runs it must have.
    """

    command: list[str]
    folder: str
    stop: str
    asker: str
    environment: dict[str, str] = {}
    timeout: float | None = None
    umask: int = -1
    versions: dict[str, str] = {}


class Exited(Struct, frozen=True):
    """How a command ended. code: its exit code, -N for signal N; None: it was killed in time, or never ran.

    refused: why it was not run. losses: how often whoever ran it was lost, where nobody tries it any more.
    """

    code: int | None = None
    refused: str = ""
    losses: int = 0
