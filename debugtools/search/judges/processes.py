"""Ending a command with all that it started."""

from contextlib import suppress

import psutil


def kill_tree(pid: int) -> None:
    """Kill a child of ours and its descendants, wherever they are in the process groups."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        process.suspend()  # it starts no more
        for child in process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
        process.kill()
