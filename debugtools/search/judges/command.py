"""A command as a judge: exit code and output decide.

It runs in a folder of its own, with the user's files linked into it.
"""

import json
import mmap
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import psutil

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError, placing
from layerwise._tool.backends.filesystem.permissions import make_folder, user_umask
from layerwise._tool.backends.filesystem.temporary import environment_of_user, note
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.judges.protocol import (
    Artifact,
    Judge,
    Judgement,
    plain_writer,
    write_golden,
    write_inputs,
)
from layerwise._tool.debugtools.search.rows import Numbers
from layerwise._tool.debugtools.search.spec import CheckSpec, DebugSpec
from layerwise._tool.debugtools.search.strategies.protocol import Verdict


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


class PassRule:
    """Whether a command has passed, by Polygraphy's rule. A code that is to be ignored passes. With fail codes, only
    they fail, and of those only runs whose output matches one of the expressions, if there are any. Without fail codes
    the expressions decide, whatever the code; without both, 0 passes.

    fail_codes, ignored: exit codes. patterns: regular expressions, searched in stdout and stderr.
    """

    def __init__(
        self, fail_codes: list[int] | None = None, ignored: list[int] | None = None, patterns: list[str] | None = None
    ) -> None:
        self._fail_codes, self._ignored = fail_codes, frozenset(ignored or ())
        self._patterns = None if patterns is None else [_compiled(text) for text in patterns]

    def passed(self, code: int, outputs: Iterable[Path]) -> bool:
        """Whether a run with this exit code and these files of output has passed."""
        if code in self._ignored:
            return True
        matches = None if self._patterns is None else any(self._found(path) for path in outputs)
        if self._fail_codes is not None:
            return not (code in self._fail_codes and matches is not False)
        return code == 0 if matches is None else not matches

    def _found(self, path: Path) -> bool:
        with path.open("rb") as stream:
            if not path.stat().st_size:
                return any(pattern.search(b"") for pattern in self._patterns or ())
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return any(pattern.search(data) for pattern in self._patterns or ())


def _compiled(text: str) -> re.Pattern[bytes]:
    try:
        return re.compile(text.encode())
    except re.error as error:
        raise UsageError(f"--fail-regex {shown(text, 80)!r} is no regular expression: {error}") from None


def kill_tree(pid: int) -> None:
    """Kill a child of ours and its descendants, wherever they are in the process groups."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        process.suspend()  # it starts no more
        for child in process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
        process.kill()


_LONGEST = 1 << 16  # bytes that are read at once; a line without end is cut there


class NewLines:
    """The lines that a file gains, safe to show."""

    def __init__(self, path: Path) -> None:
        self._path, self._at, self._rest = path, 0, b""

    def lines(self, *, whole: bool) -> Iterator[str]:
        """The lines added since the last call; with `whole` the last one too, though nothing ends it."""
        with self._path.open("rb") as stream:
            stream.seek(self._at)
            while data := stream.read(_LONGEST):
                self._at += len(data)
                *done, self._rest = (self._rest + data).split(b"\n")
                if len(self._rest) > _LONGEST:
                    done, self._rest = [*done, self._rest], b""
                yield from (shown(line.decode("utf-8", "replace").rstrip("\r")) for line in done)
        if whole and self._rest:
            yield shown(self._rest.decode("utf-8", "replace"))
            self._rest = b""


Golden = Callable[[Artifact], dict[str, Array]]
Tell = Callable[[str], None]
_LOOK = 0.1  # seconds between looks at what is printed


class CommandJudge(Judge):
    """Runs the command once a candidate, without a shell, in a folder of its own under `folder`.

    The candidate lies there under its name, with its inputs and the reference's outputs beside it where the command
    names them. Output goes to files; `tell` gets it line by line while it comes, if it is to be shown. The process
    belongs to this one's group and dies with it.
    """

    def __init__(self, spec: DebugSpec, home: Path, folder: Path, golden: Golden | None, tell: Tell) -> None:
        assert spec.check is not None
        self._spec, self._check, self._golden, self._tell = spec, spec.check, golden, tell
        self._home, self._folder = home, folder
        self.iteration: Callable[[], int] = lambda: 0  # of what is no artifact
        self._rule = PassRule(spec.check.fail_codes, spec.check.ignore_fail_codes, spec.check.fail_regex)
        self._command = resolved(spec.check, home)
        self._numbers = count(1 + max((int(p.name) for p in folder.glob("*") if p.name.isdecimal()), default=0))
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock, self._stops = threading.Lock(), 0
        self.fixed = len(Path(spec.artifact).parts) != 1
        if self.fixed:
            _make_folder((home / spec.artifact).parent)

    @property
    def parallel(self) -> int:
        """As many as asked for; one where all would write the same file."""
        shared = self.fixed or any(len(Path(name).parts) != 1 for name in self._spec.artifacts)
        return 1 if shared else self.slots

    @property
    def slots(self) -> int:
        """How many run at a time where each writes files of its own."""
        return max(1, self._check.parallel)

    def judge(self, artifact: Artifact | None) -> Judgement:
        started = time.perf_counter()
        made = [self._spec.artifact, *self._spec.artifacts, *([self._spec.iter_info] if self._spec.iter_info else [])]
        with self._lock:
            number, stops = next(self._numbers), self._stops
        folder = CheckFolder(self._folder / str(number) / "run", self._home, made)
        if artifact is not None:
            self._write(artifact, folder.path)
        if self._spec.iter_info:
            told = {"iteration": self.iteration() if artifact is None else artifact.iteration}
            info = folder.path / self._spec.iter_info
            make_folder(info.parent)
            info.write_text(json.dumps(told, indent=4))
        code, why = self._run(folder, stops)
        outputs = [folder.path.parent / name for name in ("stdout.txt", "stderr.txt")]
        measured = Numbers(exit_code=code, output=str(folder.path.parent))
        verdict = Verdict.SKIP
        if code is not None:
            verdict = Verdict.GOOD if self._rule.passed(code, outputs) else Verdict.BAD
        seconds = time.perf_counter() - started
        return Judgement(verdict, "command", seconds, measured, why, folder.path.parent)

    def stop(self) -> None:
        """Kill what runs; nobody waits for it any more. What is asked afterwards runs as ever."""
        with self._lock:
            self._stops += 1
            for process in self._running:
                kill_tree(process.pid)

    def place(self, run: Path) -> Path:
        """Where the candidate's file is for a run in `run`."""
        return self._home / self._spec.artifact if self.fixed else run / self._spec.artifact

    def _write(self, artifact: Artifact, run: Path) -> None:
        path = self.place(run)
        with placing(path):
            artifact.write(path, plain_writer)
        for name, data in artifact.files.items():
            (run / name).write_bytes(data)
        named = " ".join(self._check.command)
        if f"{path.stem}_inputs" in named:
            write_inputs(artifact, path)
        if f"{path.stem}_outputs" in named and self._golden:
            write_golden(self._golden(artifact), path)

    def _run(self, folder: CheckFolder, stops: int) -> tuple[int | None, str]:
        """The exit code, -N for signal N; None if it did not end by itself, and why."""
        place = folder.path.parent
        env = environment_of_user()
        if not env.get("CUDA_VISIBLE_DEVICES"):
            env.pop("CUDA_VISIBLE_DEVICES", None)
        with (place / "stdout.txt").open("wb") as out, (place / "stderr.txt").open("wb") as err:
            process = subprocess.Popen(
                folder.words(self._command), cwd=folder.path, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                env=env | self._check.environment, umask=user_umask(),
            )  # fmt: skip
        with self._lock:
            self._running.add(process)
            if self._stops > stops:
                kill_tree(process.pid)
        try:
            code = self._wait(process, [NewLines(place / name) for name in ("stdout.txt", "stderr.txt")])
            return self._ended(code, stops)
        finally:
            with self._lock:
                self._running.discard(process)

    def _ended(self, code: int | None, stops: int) -> tuple[int | None, str]:
        if self._stops > stops:
            return None, "stopped"
        return code, "" if code is not None else f"took longer than {self._check.timeout:g} s"

    def _wait(self, process: "subprocess.Popen[bytes]", printed: "list[NewLines]") -> int | None:
        """The exit code; None if it took too long and was killed."""
        deadline = time.monotonic() + (self._check.timeout or float("inf"))
        code: int | None = None
        while code is None and time.monotonic() < deadline:
            left = deadline - time.monotonic()
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(min(_LOOK, left) if self._check.show_output else None if left > 1e9 else left)
            if self._check.show_output:
                for follower in printed:
                    for line in follower.lines(whole=code is not None):
                        self._tell(line)
        if code is None:
            kill_tree(process.pid)
            process.wait()
        return code


def _make_folder(folder: Path) -> None:
    """Make the folder that candidates go to. UsageError where there can be none."""
    try:
        make_folder(folder)
    except OSError as error:
        raise UsageError(f"--iter-artifact: {shown(str(folder))} cannot be made: {error.strerror}") from None


def resolved(check: CheckSpec, home: Path) -> list[str]:
    """The command with its program found. UsageError if there is none of that name."""
    if not check.command:
        raise UsageError("--check needs a command")
    program, *words = check.command
    if shutil.which(program) or (home / program).is_file():
        return check.command
    if program == "layerwise":
        return [sys.executable, "-m", "layerwise", *words]
    raise UsageError(f"--check: there is no command {shown(program, 120)!r}")
