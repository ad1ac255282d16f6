"""Forks of a test process."""

import gc
import os


def fork() -> int:
    """As os.fork. The child collects nothing that was left before: a session of an earlier test waits for its threads
    when it goes, or crashes, since they are not in a fork."""
    pid = os.fork()
    if pid == 0:
        gc.freeze()
    return pid
