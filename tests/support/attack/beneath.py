"""Files changed between an attempt and its retry: what is told is of the files that are there, never of two."""

import json
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import onnx
from support.attack import journals, oracles
from support.attack.case import Case
from support.attack.kills import workers
from support.attack.lines import BY_NAME, LONG_JOBS, Line
from support.attack.place import Place
from support.attack.programs import Program, run
from support.attack.reference import newest_job, result_of
from support.attack.world import LAYERS, SIZE
from support.debugging import planted
from support.models import mlp

LINES = ("mark-all", "mark-all-good", *LONG_JOBS)
_TOLD = (".passed", ".first_bad", ".worst", ".n_failed", ".n_rows", ".found", ".suspects", ".culprits")


def attack(case: Case) -> None:
    """Kill the worker, change a file, retry."""
    line = BY_NAME[case.chance.choice(LINES)]
    reference = case.references.of(line)
    program = Program(case.place, line.words)
    lines = case.chance.randint(min(3, reference.lines), reference.lines)
    case.tell(f"layerwise {' '.join(line.words)}: SIGKILL to the worker at line {lines} of {reference.lines}")
    journals.until_journal(case.place, lines, lambda: program.process.poll() is None)
    for pid in workers(case):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    program.wait()
    before = journals.on_file(case.place)
    changed = _change(case, line)
    if journals.last_state(journals.journal_of(case.place)) not in ("failed", "lost"):
        return
    ended = run(case.place, ("jobs", "retry", "5"))
    oracles.check_said(case, ended)
    journals.check_ends(case)
    oracles.check_left(case)
    journals.check_kept(case, before)
    _check_told(case, line, changed)


def _change(case: Case, line: Line) -> str:
    """Another model, or other data, of the same names and shapes; the file."""
    there = [name for name in ("bad.onnx", "good.onnx") if name in line.words]
    name = case.chance.choice(there)
    path = case.place.work / name
    model = mlp(SIZE, LAYERS, seed=case.chance.randint(1, 5) if case.chance.random() < 0.5 else 0)
    fault = case.chance.choice(("", "/fc0/Relu", "/fc1/Add", "/fc4/Relu", "/fc3/MatMul"))
    onnx.save(planted(model, fault) if fault else model, path)
    if fault and not fault.endswith("MatMul") and case.chance.random() < 0.3:
        past = case.world.template.work.joinpath(name).stat().st_mtime_ns
        os.utime(path, ns=(past, past))
        case.tell("its time is the old one's")
    case.tell(f"{name} is another model{f', {fault} wrong' if fault else ''}")
    return name


def _check_told(case: Case, line: Line, changed: str) -> None:
    """A job that is done tells what the command tells of the files as they are now."""
    folder = newest_job(case.place)
    if folder is None or journals.last_state(journals.journal_of(case.place)) != "done":
        return
    expected = _expected(case, line, case.place.work / changed)
    told = _told(folder, case.place)
    other = {key: (value, told.get(key)) for key, value in expected.items() if told.get(key) != value}
    if other:
        case.complain("two models in one", f"undisturbed and retried: {str(other)[:600]}")


def _expected(case: Case, line: Line, file: Path) -> dict[str, str]:
    """What the command says of the changed file in a place of its own."""
    place = case.world.place(800_000 + case.number % 100_000)
    try:
        shutil.copy(file, place.work / file.name)
        run(place, line.words)
        folder = newest_job(place)
        return _told(folder, place) if folder is not None else {}
    finally:
        place.remove()


def _told(folder: Path, place: Place) -> dict[str, str]:
    leaves = result_of(folder)
    told = {key: value.replace(str(place.root), "") for key, value in leaves.items() if key.startswith(_TOLD)}
    if ".found" in told:
        nodes = [[node["node"] for node in found["nodes"]] for found in json.loads(told[".found"])]
        told[".found"] = json.dumps(sorted(nodes))
    return told
