"""What a worker process of our own cluster does first: whoever cancels the command signals the command's group, and the
cells that a worker runs are to be cancelled as jobs are, not lost with it."""

import os


def dask_setup(worker: object) -> None:
    """Called by dask when the worker starts (`preload`)."""
    os.setpgid(0, 0)
