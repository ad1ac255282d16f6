"""Low limits: descriptors, processes, memory; closed streams; a command says so and leaves all as it was."""

import os
import resource
import subprocess
import sys
from pathlib import Path

from support.attack import journals, oracles, processes
from support.attack.case import Case
from support.attack.kills import check_after, check_again
from support.attack.lines import BY_NAME, JOBS, LINES, Line
from support.attack.place import tree
from support.attack.programs import Ended, run

_FIRST_USER = 300_000  # whose processes are counted by themselves
# What needs no module that is not imported yet: another user may not be able to read Python's own.
_IMPORTED = ("mark-all", "mark-all-good", "run", "run-bad", "run-golden", "locate", "lint", "compatibility", "extract")
_SHARE_STREAMS = 0.06  # of the attempts: they need a Python of their own


def attack(case: Case) -> None:
    """Run a command under a limit."""
    line = case.chance.choice(JOBS if case.chance.random() < 0.7 else LINES)
    if case.chance.random() < _SHARE_STREAMS:
        _streams(case, line)
        return
    way = case.chance.choice((_descriptors, _descriptors, _processes, _memory))
    if "--check" in line.words or (way == _processes and line.name not in _IMPORTED):
        line = BY_NAME[case.chance.choice(_IMPORTED)]  # a script of the user's may say anything then
    case.tell(f"layerwise {' '.join(line.words)}: {way.__name__.strip('_')}")
    old, before = tree(case.place.work), journals.on_file(case.place)
    ended = way(case, line)
    oracles.check_said(case, ended)
    if ended.code == 0 and case.references.of(line).code == 1:
        case.complain("false verdict", oracles.tail(ended.said))
    check_after(case, line, ended, old, before, (), False)
    if case.chance.random() < 0.3:
        check_again(case, line)


def _descriptors(case: Case, line: Line) -> Ended:
    """`ulimit -n`."""
    most = case.chance.randint(6, 64)
    case.tell(f"{most} descriptors")
    return run(case.place, line.words, limits={resource.RLIMIT_NOFILE: most})


def _processes(case: Case, line: Line) -> Ended:
    """`ulimit -u`, of a user who has no other process where that is possible."""
    most = case.chance.randint(1, 12)
    case.tell(f"{most} processes and threads")
    if os.geteuid() != 0:
        return run(case.place, line.words, limits={resource.RLIMIT_NPROC: most})
    user = _FIRST_USER + case.number % 100_000
    _give(case.place.root, user)
    try:
        return run(case.place, line.words, limits={resource.RLIMIT_NPROC: most}, uid=user)
    finally:
        processes.gone(case.place)  # what runs still may go on reading
        _give(case.place.root, 0)


def _give(root: Path, user: int) -> None:
    for parent, folders, names in os.walk(root):
        for path in (parent, *(os.path.join(parent, name) for name in (*folders, *names))):  # noqa: PTH118
            os.chown(path, user, user, follow_symlinks=False)


def _memory(case: Case, line: Line) -> Ended:
    """`ulimit -v`."""
    most = case.chance.randint(300, 1200) << 20
    case.tell(f"{most >> 20} MB of address space")
    return run(case.place, line.words, limits={resource.RLIMIT_AS: most})


def _streams(case: Case, line: Line) -> None:
    """stdin, stdout and stderr closed, in a Python of its own."""
    closed = case.chance.choice((">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"))
    case.tell(f"layerwise {' '.join(line.words)} {closed}")
    old, before = tree(case.place.work), journals.on_file(case.place)
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "layerwise", *line.words]
    done = subprocess.run(
        command, cwd=case.place.work, env=case.place.env, capture_output=True, timeout=120, check=False, text=True,
        errors="replace",
    )  # fmt: skip
    ended = Ended(done.returncode, done.stdout, done.stderr, 0.0, 0)
    reference = case.references.of(line)
    if ended.code not in {*oracles.CODES} or (reference.code == 1 and ended.code == 0):
        case.complain("exit code", f"{ended.code}, undisturbed {reference.code}: {oracles.tail(ended.said)}")
    if "Traceback" in ended.said:
        case.complain("traceback", oracles.tail(ended.said))
    check_after(case, line, ended, old, before, (), False)
