"""The folder that a check command runs in: its own, with the user's files linked into it."""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.feeds.sources import save_feeds
from layerwise._tool.backends.filesystem.permissions import user_umask
from layerwise._tool.backends.filesystem.temporary import note
from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.debugtools.search.judges.protocol import Artifact

SMALL = 16 << 20  # bytes of tensors that are written as JSON


class CheckFolder:
    """Files around one run. home: the user's folder; names: files that the run makes, so they are not linked.

    Words of a command that name something above `home` are made absolute, all others mean the same here as there.
    """

    def __init__(self, path: Path, home: Path, names: Collection[str]) -> None:
        self.path, self._home = path, home
        note(path)
        path.mkdir(parents=True)
        for entry in os.scandir(home):
            if entry.name not in names and not path.is_relative_to(entry.path):
                (path / entry.name).symlink_to(entry.path)

    def words(self, command: Sequence[str]) -> list[str]:
        """The command as it is run here."""
        return [self._word(word) for word in command]

    def _word(self, word: str) -> str:
        option, equals, value = word.rpartition("=")
        if not value.startswith("..") or not (self._home / value).exists():
            return word
        return f"{option}{equals}{(self._home / value).resolve()}"


@contextmanager
def plain_writer(path: Path) -> Iterator[BinaryIO]:
    """For files that live for one run, or are moved to the user's own: nobody waits for the disk."""
    with path.open("wb") as stream:
        path.chmod(0o666 & ~user_umask())
        yield stream


def companion(artifact: Path, what: str, nbytes: int) -> Path:
    """Where a model's inputs or outputs lie: `<stem>_inputs.json` beside it, .safetensors if they are large."""
    return artifact.with_name(f"{artifact.stem}_{what}{'.json' if nbytes <= SMALL else '.safetensors'}")


def write_inputs(artifact: Artifact, path: Path) -> Path:
    """Write a candidate's inputs beside its model, for --load-inputs; where they are."""
    feed = {name: array for name, array in artifact.feeds.items() if name not in artifact.frozen}
    target = companion(path, "inputs", sum(array.nbytes for array in feed.values()))
    save_feeds(target, [feed])
    return target


def write_golden(outputs: dict[str, Array], path: Path) -> Path:
    """Write what the reference makes of a candidate beside its model, for --load-outputs; where it is."""
    results = RunResults([("reference", [IterationResult(outputs, 0.0, "reference")])])
    target = companion(path, "outputs", sum(array.nbytes for array in outputs.values()))
    results.save(target)
    return target
