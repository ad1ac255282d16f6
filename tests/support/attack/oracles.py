"""What must hold of what a command said, of files and of processes, whatever was done to it."""

import re
import stat
import unicodedata
from collections.abc import Collection
from pathlib import Path

from support.attack import formats, processes
from support.attack.case import Case
from support.attack.programs import LIMIT, Ended, run
from support.attack.reference import Reference
from support.soak.processes import within

from layerwise._tool.backends.jobs.workspace import leases

CODES = (0, 1, 2, 130)
MOST_RESIDENT = 2 << 30
_TRACEBACK = "Traceback (most recent call last)"
_REPLAY = "polygraphy_debug"  # grows with each verdict
_NUMBERED = re.compile(r"/bundle-\d+/")
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def check_said(case: Case, ended: Ended, codes: Collection[int] = CODES, killed: bool = False) -> None:
    """The exit code, and that what was said is fit for a terminal and for a person. killed: it had no time to speak."""
    case.last = ended
    if ended.code is None:
        case.complain("hang", f"no end after {LIMIT:.0f} s")
    elif ended.code not in codes:
        case.complain("exit code", f"{ended.code}, not of {sorted(codes)}: {tail(ended.said)}")
    if _TRACEBACK in ended.said:
        case.complain("traceback", tail(ended.said))
    hidden = next((char for char in ended.said if char != "\n" and unicodedata.category(char) in _HIDDEN), None)
    if hidden is not None:
        case.complain("control character", f"{hidden!r} in {around(ended.said, hidden)}")
    if ended.code not in (0, None, 130) and not killed and not ended.said.strip():
        case.complain("silence", f"exit code {ended.code} and not a word")
    check_memory(case, ended)


def check_memory(case: Case, ended: Ended) -> None:
    if ended.peak > MOST_RESIDENT:
        case.complain("memory", f"{ended.peak >> 20} MB resident after {ended.seconds:.1f} s")


def check_inputs(case: Case, but: Collection[str] = ()) -> None:
    """What the user had is what it was, byte for byte."""
    for name in case.world.files:
        ours, theirs = case.place.work / name, case.world.template.work / name
        if name not in but and (not ours.is_file() or ours.read_bytes() != theirs.read_bytes()):
            case.complain("input changed", name)


def check_made(case: Case, reference: Reference, ended: Ended, old: dict[str, str], now: dict[str, str]) -> None:
    """Each file that a command makes is the old one, the new one whole, or absent; all are there if it says so."""
    if ended.code == 0 and reference.code == 0:
        there = set(map(usual, now))
        missing = sorted(name for name in reference.made if usual(name) not in there)
        if missing:
            case.complain("not complete", f"exit code 0 without {missing[:4]}")
    for name, digest in reference.made.items():
        if name not in now or now[name] in (digest, old.get(name)):
            continue
        if reference.grows and name == "made.onnx" and _fails(case.place.work / name):
            continue
        if digest and not name.startswith(_REPLAY):
            case.complain("half made", f"{name} is neither what it was nor what the command makes")
        elif broken := formats.broken(case.place.work / name):
            case.complain("half made", f"{name}: {broken}")


def check_temporary(case: Case, reference: Reference | None, now: Collection[str]) -> None:
    """Nothing is in the user's folder but what was there and what the command makes."""
    known = {*case.world.files, *map(usual, reference.made if reference else ())}
    more = sorted(name for name in now if usual(name) not in known)
    if more:
        case.complain("left in the folder", f"{more[:4]}")


def check_left(case: Case, *sessions: int) -> None:
    """No process, no lease, nothing in TMPDIR once somebody has looked at the jobs."""
    left = processes.gone(case.place, *sessions)
    processes.end(left)
    if left:
        case.complain("process left", f"{left[0].what} and {len(left) - 1} more")
    if not within(2.0, lambda: not _leases(case)):
        case.complain("lease left", f"{_leases(case)}")
    if _temporary(case):
        run(case.place, ["jobs", "list"])
    if more := _temporary(case):
        case.complain("left in TMPDIR", f"{more[:4]}")


def _temporary(case: Case) -> list[str]:
    return sorted(path.name for path in case.place.temp.iterdir()) if case.place.temp.is_dir() else []


def _leases(case: Case) -> list[str]:
    folders = case.place.leases.iterdir() if case.place.leases.is_dir() else ()
    return [name for folder in folders if folder.is_dir() for name in leases.taken(folder)]


def check_private(case: Case) -> None:
    """Folders of the workspace are the user's alone, and so are its files."""
    for path in case.place.home.rglob("*"):
        if not path.is_symlink() and stat.S_IMODE(path.lstat().st_mode) & 0o077:
            case.complain("open to others", f"{path.relative_to(case.place.home)} {stat.filemode(path.stat().st_mode)}")
            return


def _fails(path: Path) -> bool:
    """Whether a model has the fault, and is whole."""
    return not formats.broken(path) and b"Softplus" in path.read_bytes()


def usual(name: str) -> str:
    """The name of a file in a bundle, whose folder has a number where another was there before."""
    return _NUMBERED.sub("/bundle/", name)


def tail(text: str) -> str:
    """The end of what was said, in a line."""
    return text.strip()[-600:].encode("unicode_escape").decode()


def around(text: str, char: str) -> str:
    place = text.index(char)
    return repr(text[max(0, place - 30) : place + 30])
