"""What a search keeps on disk: the smallest failing model so far, and the nearest one that passes; files of commands.

What commands leave is sorted into good and bad as Polygraphy names it.
"""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import writing
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.filesystem.folders import move_whole
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judgement
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import BestRow, Numbers
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


_LONGEST = 16 << 10


class Sorter:
    """names: the files to sort, as the user typed them; target: the folder that holds good, bad and skip."""

    def __init__(self, context: "JobContext", names: list[str], target: Path) -> None:
        self._context, self._names, self._target = context, names, target
        self._stamp = f"{time.strftime('%x').replace('/', '-')}_{time.strftime('%X').replace(':', '-')}"

    def sort(self, folder: Path, verdict: Verdict, suffix: str) -> None:
        """Move what a run left in `folder`; nothing is overwritten."""
        for name in self._names:
            source = folder / name
            base = Path(name)
            target = self._target / verdict.value / f"{base.stem}_{self._stamp}{suffix}{base.suffix}"
            if not source.exists():
                self._context.log(f"Artifact: {shown(name)} does not exist, skipping.", "error")
            elif target.exists():
                self._context.log(f"{shown(str(target))} already exists and stays; {shown(name)} is skipped.", "error")
            else:
                self._context.log(f"Moving {shown(name)} to {shown(str(target))}")
                make_folder(target.parent)
                move_whole(source, target)


def captured(path: Path) -> str:
    """What a command printed, its last 16 KB, safe to show."""
    data = path.read_bytes()
    text = data[-_LONGEST:].decode("utf-8", "replace")
    cut = f"… ({len(data)} bytes, all of them in {shown(str(path))})\n" if len(data) > _LONGEST else ""
    return cut + "\n".join(shown(line) for line in text.splitlines())


class Files:
    """What commands leave: output that is shown, artifacts that are sorted, the candidate if it is to stay."""

    def __init__(self, context: "JobContext", spec: DebugSpec, home: Path) -> None:
        self._context, self._spec, self._home = context, spec, home
        self._sorter = Sorter(context, spec.artifacts, home / spec.artifacts_dir)

    def take(self, judgement: Judgement, suffix: str) -> None:
        """Show, sort and keep what a run left; the rest is removed. suffix: "" where nothing is to be sorted."""
        if judgement.folder is None:
            return
        self._show(judgement, judgement.folder)
        run = judgement.folder / "run"
        if suffix:
            self._sorter.sort(run, judgement.verdict, suffix)
        if self._spec.iter_info:
            (run / self._spec.iter_info).unlink(missing_ok=True)
        kept, candidate = self._home / self._spec.artifact, run / self._spec.artifact
        if self._spec.keep_intermediate and suffix and candidate.is_file() and candidate.resolve() != kept.resolve():
            shutil.move(candidate, kept)
        elif not self._spec.keep_intermediate and len(Path(self._spec.artifact).parts) > 1:
            kept.unlink(missing_ok=True)
        if self._spec.check is not None and self._spec.check.parallel == 1:
            self._keep(run)
        shutil.rmtree(run, ignore_errors=True)

    def _keep(self, run: Path) -> None:
        """Move what a command wrote besides to the user's folder, where a command that runs there leaves it."""
        stem = Path(self._spec.artifact).stem
        own = {self._spec.artifact, self._spec.iter_info, *self._spec.artifacts}
        for path in sorted(run.iterdir()):
            mine = path.name in own or path.stem in (f"{stem}_inputs", f"{stem}_outputs") or path.is_symlink()
            if not mine and (path.is_file() or not (self._home / path.name).exists()):
                shutil.move(path, self._home / path.name)

    def _show(self, judgement: Judgement, folder: Path) -> None:
        check = self._spec.check
        assert check is not None
        bad = judgement.verdict is Verdict.BAD
        if check.show_output or not bad or check.hide_fail_output:
            return  # shown while it ran, or not at all
        self._context.log(f"========== CAPTURED STDOUT ==========\n{captured(folder / 'stdout.txt')}")
        self._context.log(f"========== CAPTURED STDERR ==========\n{captured(folder / 'stderr.txt')}", "error")


_PATIENCE = 10.0  # the next model is written once this many times as long has passed as the last one took


class Smallest:
    """The smallest set of a search so far, its model on disk at `path`. found: the set, None: nothing yet."""

    def __init__(self, context: "JobContext", path: Path) -> None:
        self._context, self.path = context, path
        self.found: tuple[int, ...] | None = None
        self.measured = Numbers()
        self._written: tuple[int, ...] | None = None
        self._next = 0.0

    def take(self, found: Sequence[int], measured: Numbers) -> None:
        """A candidate shows what is searched."""
        if self.found is None or len(found) < len(self.found):
            self.found, self.measured = tuple(found), measured

    def save(self, *, now: bool = True) -> None:
        """Write the model if it is not the one on disk; unless it must be `now`, only where writing keeps up."""
        if self.found is None or self.found == self._written or (not now and time.monotonic() < self._next):
            return
        started = time.monotonic()
        with writing(shown(str(self.path))):
            self._write(self.found)
        self._next = time.monotonic() + _PATIENCE * (time.monotonic() - started)
        self._written = self.found
        nodes, labels = self._told(self.found)
        row = BestRow(list(nodes[:200]), len(nodes), list(labels[:20]), str(self.path), self.measured)
        self._context.row("best", row)

    def _write(self, found: tuple[int, ...]) -> None:
        raise NotImplementedError

    def _told(self, found: tuple[int, ...]) -> tuple[Sequence[int], Sequence[str]]:
        """Its nodes, and names for at least the first of them."""
        raise NotImplementedError


class Best(Smallest):
    """The nodes that fail. good: where the nearest model goes that passes, None: nowhere."""

    def __init__(self, context: "JobContext", subject: Subject, path: Path, good: Path | None) -> None:
        super().__init__(context, path)
        self._subject, self._good_path = subject, good
        self._good: list[tuple[int, ...]] = []

    def clear(self) -> None:
        """Nothing has failed yet: the search begins anew."""
        self.found, self.measured = None, Numbers()
        self._good.clear()

    def good(self, nodes: Sequence[int]) -> None:
        """A candidate passed."""
        if self._good_path is not None:
            self._good.append(tuple(nodes))

    def _write(self, found: tuple[int, ...]) -> None:
        write_model(self._subject.artifact(found), self.path)

    def _told(self, found: tuple[int, ...]) -> tuple[Sequence[int], Sequence[str]]:
        return found, [self._subject.describe(i).node for i in found[:20]]

    def save_good(self) -> str | None:
        """Write the largest model that passed of those smaller than the failing one, else the smallest that passed."""
        size = len(self.found or ())
        smaller = [nodes for nodes in self._good if len(nodes) < size]
        nearest = max(smaller, key=len, default=None) or min(self._good, key=len, default=None)
        if self._good_path is None or nearest is None:
            return None
        write_model(self._subject.artifact(nearest), self._good_path)
        return str(self._good_path)


def write_model(artifact: Artifact, path: Path) -> None:
    """Write a candidate to where a user keeps it, whole or not at all."""
    with writing(shown(str(path))):
        make_folder(path.parent)
        artifact.write(path, atomic_writer)
