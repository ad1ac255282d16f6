"""What a judge is given and what it answers. A candidate that brought an earlier worker down is not tried again.

A candidate's files: its inputs and the reference's outputs, beside its model.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.filesystem.permissions import user_umask
from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.debugtools.search.rows import CandidateRow, Numbers
from layerwise._tool.debugtools.search.strategies.protocol import Verdict
from layerwise._tool.surgery.cut.file import Opener

NOTHING, UNNAMED = Numbers(), CandidateRow()
By = Literal["comparison", "command", "person", "cache", "replay"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, whose it is and what it rests on.

    note: why it was skipped, or what to know. folder: where a command left its files.
    """

    verdict: Verdict
    by: By
    seconds: float = 0.0
    measured: Numbers = NOTHING
    note: str = ""
    folder: Path | None = None


@dataclass(frozen=True)
class Artifact:
    """A candidate as a model. nodes: its nodes in the original graph, glue among them; key: hash of its content.

    feeds: its inputs' values, read when asked for; gives: its outputs. build: its bytes, weights external in the
    suspect's file. write: makes a file of its own; frozen: feeds that are weights in that file.
    about: the candidate as rows show it. iteration: number of the question within its phase.
    files: others that were made with it, by the names that commands know them by.
    """

    nodes: tuple[int, ...]
    glue: tuple[int, ...]
    key: str
    feeds: Mapping[str, Array]
    gives: tuple[str, ...]
    build: Callable[[], bytes]
    write: Callable[[Path, Opener], None]
    frozen: frozenset[str] = frozenset()
    about: CandidateRow = UNNAMED
    iteration: int = 0
    files: Mapping[str, bytes] = field(default_factory=dict)


class Judge:
    """Answers about artifacts (None: there is none, the same thing is tried again), in this thread."""

    @property
    def parallel(self) -> int:
        """How many it may be asked about at once, from threads."""
        return 1

    def judge(self, artifact: Artifact | None) -> Judgement:
        raise NotImplementedError

    def stop(self) -> None:
        """No answer is awaited any more."""


class Undo(Exception):
    """A person takes the last verdict back."""


class Auto(Exception):
    """A person lets the machine finish."""


class AfterCrash(Judge):
    """A judge that skips the candidate `key`, for the reason `why`."""

    def __init__(self, judge: Judge, key: str, why: str) -> None:
        self._judge, self._key, self._why = judge, key, why

    def judge(self, artifact: Artifact | None) -> Judgement:
        if artifact is not None and artifact.about.key == self._key:
            return Judgement(Verdict.SKIP, "comparison", note=f"it brought the worker down: {self._why}")
        return self._judge.judge(artifact)


SMALL = 16 << 20  # bytes of tensors that are written as JSON


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
