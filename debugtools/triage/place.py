"""Where a triage's files lie: in the job until all of them are made, then where the user wants them."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from layerwise._tool.backends.filesystem.folders import whole_folder
from layerwise._tool.backends.filesystem.permissions import make_folder


class Place:
    """work: the folder in the job, which later attempts go on with. output: the user's, None: there is none."""

    def __init__(self, work: Path, output: Path | None) -> None:
        self.work, self.output = work, output

    def check(self) -> None:
        """OSError where nothing can be put at the user's folder."""
        if self.output is None:
            return
        make_folder(self.output.parent)
        if self.output.exists() and not self.output.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self.output))
        if not os.access(self.output.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self.output))

    @contextmanager
    def published(self) -> Iterator[Path]:
        """Yield the folder that reports are written to; in the end all is at its place, whole. OSError."""
        if self.output is None:
            yield self.work
            return
        make_folder(self.output.parent)
        with whole_folder(self.output, merge=True) as new:
            shutil.copytree(self.work, new, dirs_exist_ok=True)
            yield new

    def bundles(self) -> int:
        """How many bundles there are already; a new one gets the next number."""
        folders = [self.work] if self.output is None else [self.work, self.output]
        return len({path.name for folder in folders for path in folder.glob("bundle*") if path.is_dir()})

    def told(self, value: Any) -> Any:
        """A JSON value with the paths that its files have in the end."""
        return value if self.output is None else _replaced(value, str(self.work), str(self.output))

    def known(self, value: Any) -> Any:
        """The value that `told` was given."""
        return value if self.output is None else _replaced(value, str(self.output), str(self.work))


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old + os.sep, new + os.sep)
    if isinstance(value, dict):
        return {key: _replaced(each, old, new) for key, each in value.items()}
    return [_replaced(each, old, new) for each in value] if isinstance(value, list) else value
