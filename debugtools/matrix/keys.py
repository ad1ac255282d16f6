"""The key of a cell: a hash of the bytes of its model and feeds, of what it is asked to do, and of the versions."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.jobs.identity import identity
from layerwise._tool.backends.older_python import file_digest
from layerwise._tool.debugtools.matrix.spec import CellSpec

_NOT_ASKED = ("title", "command", "cwd", "source", "umask")  # of a job: says nothing of its result


class Key(Struct, frozen=True):
    """key: the whole. parts: hashes of model, feeds and spec. files: what the job will note of each file it reads."""

    key: str
    parts: dict[str, str]
    files: dict[str, str]


class Keys:
    """Makes the keys of many cells; each file is read once. versions: of what will compute."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        self._versions = json.dumps(dict(versions), sort_keys=True)
        self._digests: dict[str, bytes] = {}

    def key(self, cell: CellSpec) -> Key:
        """The key of a cell; relative names start at the current folder. BadFile for one that cannot be read."""
        found = identity(cell.job.params)
        model, feeds = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
        for name, facts in found.files.items():
            (model if facts.key == "model" else feeds).update(self._digest(name))
        feeds.update(json.dumps(found.environment, sort_keys=True).encode())
        parts = {"model": model.hexdigest(), "feeds": feeds.hexdigest(), "spec": _asked(cell)}
        whole = hashlib.blake2b(json.dumps([parts, self._versions], sort_keys=True).encode(), digest_size=16)
        files = {name: facts.hash for name, facts in found.files.items()}
        return Key(whole.hexdigest(), {name: value[:12] for name, value in parts.items()}, files)

    def _digest(self, name: str) -> bytes:
        if name not in self._digests:
            try:
                with Path(name).open("rb") as stream:
                    self._digests[name] = file_digest(stream).digest()
            except OSError as error:
                raise BadFile(name, error.strerror or str(error)) from error
        return self._digests[name]


def _asked(cell: CellSpec) -> str:
    """A hash of what a cell is asked to do, whatever it is called and wherever it stands."""
    job = msgspec.to_builtins(cell.job)
    job = {name: value for name, value in job.items() if name not in _NOT_ASKED}
    follows = [cell.locate is not None, cell.bundle, cell.repeat]
    text = json.dumps([job, follows], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
