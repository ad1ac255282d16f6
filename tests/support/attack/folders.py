"""Job folders damaged, while a job lives and after: the others go on, a live job lives on, the user's files stay."""

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

from support.attack import app, damage, journals, oracles, processes
from support.attack.case import Case
from support.attack.place import tree
from support.attack.programs import Ended, Program, run
from support.soak.processes import within

FILES = ("events.jsonl", "lock", "spec.json", "replies.jsonl", "log.txt", "artifacts", "tag", "reserve")
AROUND = (".bell", ".last", "../index.sqlite", "../index.sqlite-journal")
LIVE_FILES = ("lock", "replies.jsonl", "log.txt", "tag", "reserve")
_NEGATIVE = re.compile(r" -[\d.]+ (s|min|h|d)\b")
_SLOW = 20.0  # seconds that a list of a few jobs may take
COMMANDS = (
    ("jobs",), ("jobs", "list", "--json"), ("jobs", "show", "{}"), ("jobs", "show", "{}", "--json"),
    ("jobs", "logs", "{}"), ("attach", "{}"), ("jobs", "cancel", "{}"), ("jobs", "prune", "{}"),
    ("attach", "{}", "--json"), ("jobs", "list", "--all"), ("debug", "bundle", "{}", "-o", "made"),
    ("jobs", "retry", "{}"),
)  # fmt: skip


def attack(case: Case) -> None:
    """Damage one job or what is around the jobs; then look at, follow and remove others."""
    user = _users_folder(case)
    way = case.chance.choices((_ended, _around, _strange, _aged, _live), (10, 3, 3, 2, 5))[0]
    way(case, user)
    now = tree(user)
    if now != _USER:
        case.complain("input changed", f"a file of the user's that the damage points to: {sorted(now)}")
    oracles.check_inputs(case)
    _check_leaves(case)


_TEXT = "the user's own"


def _users_folder(case: Case) -> Path:
    (case.place.user / "kept").mkdir()
    for name in ("kept.txt", "kept/below.txt"):
        (case.place.user / name).write_text(_TEXT)
    return case.place.user


def _made() -> dict[str, str]:
    from support.attack.place import digest_of

    return dict.fromkeys(("kept.txt", "kept/below.txt"), digest_of(_TEXT.encode()))


_USER = _made()


def _ended(case: Case, user: Path) -> None:
    """A file of a job that has ended."""
    job = case.chance.choice((1, 2, 3, 4))
    path = case.place.home / "jobs" / str(job) / case.chance.choice(FILES)
    if path.suffix in (".jsonl", ".json") and path.stat().st_size and case.chance.random() < 0.5:
        what = damage.mutated_lines(path, case.chance)
    else:
        what = damage.replaced(path, case.chance, user)
    case.tell(f"{path.name} of job {job} is {what}")
    _look(case, {job})


def _around(case: Case, user: Path) -> None:
    """A file beside the jobs, or the folder of a job itself."""
    name = case.chance.choice((*AROUND, "1", "4"))
    path = case.place.home / "jobs" / name
    case.tell(f"{name} is {damage.replaced(path, case.chance, user)}")
    _look(case, {int(name)} if name.isdecimal() else set())


def _strange(case: Case, user: Path) -> None:
    """A folder or a file of a strange name among the jobs."""
    name = case.chance.choice(damage.NAMES)
    path = case.place.home / "jobs" / name
    whole = case.chance.random() < 0.6
    path.unlink(missing_ok=True)
    if whole:
        shutil.copytree(case.place.home / "jobs" / "1", path)
    else:
        path.write_text("x")
    case.tell(f"{name!r} lies among the jobs")
    _look(case, set())


def _aged(case: Case, user: Path) -> None:
    """The clock was set back, or the job's processes went away long ago."""
    shift = case.chance.choice((86400.0, 3600.0, -7200.0))
    path = case.place.home / "jobs" / "4" / "events.jsonl"
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    for event in events:
        event["t"] += shift
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    past = time.time() + min(shift, 0.0)
    for file in path.parent.iterdir():
        os.utime(file, (past, past))
    case.tell(f"job 4 was lost at {shift:+.0f} s")
    _look(case, set())
    shown = run(case.place, ("jobs", "list", "--json"))
    job = next((job for job in _listed(shown) if job.get("job") == 4), {})
    took = job["ended"] - job["started"] if job.get("ended") and job.get("attempt") == 1 else 0.0
    if took < 0.0 or took > 60.0:
        case.complain("untrue state", f"a job that was lost after a moment took {took:.0f} s")
    listed = run(case.place, ("jobs",)).out
    if _NEGATIVE.search(listed):
        case.complain("negative duration", oracles.tail(listed))


def _live(case: Case, user: Path) -> None:
    """A file of a job that runs: it goes on, whoever looks, and is done."""
    program = Program(case.place, ("run", "good.onnx", "--onnxrt", "--onnx", "--data-loader-script", "wait.py"))
    if not within(20.0, lambda: any("sleep" in found.what for found in processes.of(case.place))):
        case.complain("the harness failed", f"no job came to wait: {program.wait(1.0)}")
        return
    before = journals.on_file(case.place)
    path = case.place.home / "jobs" / "5" / case.chance.choice(LIVE_FILES)
    case.tell(f"{path.name} of the live job 5 is {damage.replaced(path, case.chance, user)}")
    _look(case, {5}, but=("cancel", "attach", "prune", "bundle", "retry"))
    waiting = program.process.poll() is None
    (case.place.work / "go").touch()
    ended = program.wait()
    (case.place.work / "go").unlink()
    state = journals.last_state(journals.on_file(case.place).get("5", b""))
    if not waiting or ended.code != 0 or state != "done":
        case.complain("a live job dies", f"exit code {ended.code}, {state}: {oracles.tail(ended.said)}")
    journals.check_kept(case, before, {str(job) for job in (1, 2, 3, 4)})


def _look(case: Case, damaged: set[int], but: tuple[str, ...] = ()) -> None:
    """What a person does next, until something hangs. damaged: jobs that need not be shown whole."""
    listed = run(case.place, ("jobs", "list", "--all", "--json"))
    _check_list(case, listed, damaged)
    usual = [words for words in COMMANDS if not set(words) & set(but)]
    chosen = [(words, case.chance.choice((1, 2, 3, 4, *damaged))) for words in case.chance.sample(usual, 3)]
    if listed.code is None or not all(_look_at(case, words, job, damaged) for words, job in chosen):
        return
    if not but and case.chance.random() < 0.1:
        app.glance(case)
    if case.chance.random() < 0.4:
        _check_new(case)


def _look_at(case: Case, words: tuple[str, ...], job: int, damaged: set[int]) -> bool:
    """One command on a job; False where it hangs."""
    line = tuple(word.format(job) for word in words)
    case.tell(f"layerwise {' '.join(line)}")
    there = _is_there(case, job)
    ended = run(case.place, line)
    _check_said(case, ended)
    if words[:2] == ("jobs", "show") and there and job not in damaged and ended.code != 0:
        case.complain("a job takes others along", f"{' '.join(line)}: {oracles.tail(ended.said)}")
    return ended.code is not None


def _check_new(case: Case) -> None:
    """A new job among them."""
    line = ("run", "good.onnx", "--onnxrt", "--onnx")
    case.tell(f"layerwise {' '.join(line)}")
    ended = run(case.place, line)
    _check_said(case, ended)
    if ended.code != 0:
        case.complain("a job takes others along", f"a new job: {oracles.tail(ended.said)}")


def _is_there(case: Case, job: int) -> bool:
    return (case.place.home / "jobs" / str(job) / "spec.json").is_file()


def _check_list(case: Case, ended: Ended, damaged: set[int]) -> None:
    _check_said(case, ended)
    there = {job for job in (1, 2, 3, 4) if _is_there(case, job)} - damaged
    shown = {job.get("job") for job in _listed(ended)}
    if ended.code != 0 or not there <= shown:
        case.complain("a job takes others along", f"shown {sorted(map(str, shown))}: {oracles.tail(ended.err)}")


def _listed(ended: Ended) -> list[dict[str, Any]]:
    try:
        listed = json.loads(ended.out)
    except ValueError:
        return []
    return [job for job in listed if isinstance(job, dict)] if isinstance(listed, list) else []


def _check_said(case: Case, ended: Ended) -> None:
    oracles.check_said(case, ended)
    if ended.seconds > _SLOW:
        case.complain("slow", f"{ended.seconds:.0f} s")


def _check_leaves(case: Case) -> None:
    left = processes.gone(case.place)
    processes.end(left)
    if left:
        case.complain("process left", f"{left[0].what} and {len(left) - 1} more")
