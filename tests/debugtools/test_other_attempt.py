"""Another attempt of a job whose model, inputs or reference have changed meanwhile: nothing of before is mixed in."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from support.attempts import (
    ACTIONS,
    CHANGES,
    FEEDS,
    SIDES,
    Counting,
    Way,
    bisect,
    chain,
    compare,
    data_alone,
    essence,
    inputs,
    locate,
    nothing,
    precision,
    reduce,
    reference,
    run,
    tables,
    timeless,
    told,
    touched,
    weights,
)

from layerwise._tool.backends.jobs import identity
from layerwise._tool.backends.jobs.actions import find_action
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.earlier_attempts import rows_of
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.log import CRITICAL, Log
from layerwise._tool.debugtools import ACTIONS as OFFERED
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.search.spec import CheckSpec, DebugSpec
from layerwise._tool.tui.cli.run.report import CompareReport
from layerwise._tool.tui.controllers.errors_page import ErrorsController
from layerwise._tool.tui.state.debugging import DebugState
from layerwise._tool.tui.state.errors_page import ErrorsState
from layerwise._tool.tui.state.session import Session
from layerwise._tool.tui.state.signal import Signal


def on_screens(folder: Path, job: JobSpec) -> Any:
    """What the Debug and Errors screens list, and what the printed report counts."""
    debug, errors, session = DebugState(), ErrorsState(), Session(None)
    app: Any = SimpleNamespace(errors=errors, session=session, jobs=SimpleNamespace(on_change=Signal()))
    controller = ErrorsController(app)
    debug.open(1, job.action, job.params)
    report = CompareReport(Log(CRITICAL), CompareSpec())
    for event in read_events(folder):
        debug.take(event)
        controller.take(event)
        if job.action == "compare":
            report.event(event)
    listed = [timeless(msgspec.to_builtins(errors.table.row(place))) for place in range(len(errors.table))]
    worst = report.totals.worst and report.totals.worst.tensor
    return [timeless(row) for row in debug.rows], listed, (report.totals.rows, report.totals.failed, worst)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
def test_another_attempt_says_what_a_fresh_job_says(
    action: Callable[[CompareSpec], tuple[str, Any]], here: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(ACTIONS.index(action))
    cases = 0
    changes = [change for change in CHANGES if change is not reference or action is not precision]
    for number, change in enumerate(changes):
        external = bool((number + ACTIONS.index(action)) % 2)
        source = str(random.choice(list(FEEDS))) if change is not inputs else ("file", "loader")[external]
        with here.context() as patch:
            way = Way(patch, external)
            way.prepare()
            spec = CompareSpec(model="bad.onnx", runners=SIDES, feeds=FEEDS[source])
            name, asked = action(spec)
            job = JobSpec(action=name, params=msgspec.to_builtins(asked))
            folder, ended = run(job, last=int(random.integers(3, 9)))
            assert ended is None
            change(way)
            label = f"{change.__name__}, external: {external}, inputs: {source}"
            _, again = run(job, folder, 2)
            fresh, expected = run(job)
            assert essence(again) == essence(expected), label
            dropped = told(folder)
            if change in (nothing, touched):
                assert not dropped, label
            else:
                assert len(dropped) == 1 and CHANGES[change] in dropped[0] and "attempt 1" in dropped[0], label
                assert tables(folder) == tables(fresh), label
                assert on_screens(folder, job) == on_screens(fresh, job), label
                counts = JobView(folder), JobView(fresh)
                for view in counts:
                    view.refresh()
                    view.counts.pop("best", None)  # written as often as the disk keeps up
                    view.counts.pop("band", None)  # shown so many times a second
                assert counts[0].counts == counts[1].counts, label
            cases += 1
    assert cases == len(changes)


@pytest.mark.parametrize("action", [compare, locate, reduce], ids=lambda action: action.__name__)
def test_inputs_of_a_script_that_cannot_be_traced_are_told_by_their_values(
    action: Callable[[CompareSpec], tuple[str, Any]], here: pytest.MonkeyPatch
) -> None:
    way = Way(here, False)
    way.prepare()
    spec = CompareSpec(model="bad.onnx", runners=SIDES, feeds=FEEDS["unnamed"])
    name, asked = action(spec)
    job = JobSpec(action=name, params=msgspec.to_builtins(asked))
    for last in (3, 6):
        way.prepare()
        folder, _ = run(job, last=last)
        inputs(way)
        _, again = run(job, folder, 2)
        fresh, expected = run(job)
        assert essence(again) == essence(expected)
        assert ["other inputs" in text for text in told(folder)] == [True]
        assert tables(folder) == tables(fresh)


@pytest.mark.parametrize("change", [weights, data_alone, reference, inputs], ids=lambda change: change.__name__)
def test_what_changes_while_a_job_runs_gives_no_verdict(
    change: Callable[[Way], None], here: pytest.MonkeyPatch
) -> None:
    from layerwise._tool.backends.errors import LayerwiseError

    changes = (weights, data_alone, reference, inputs)
    for number, action in enumerate((compare, locate, bisect)):
        external = bool((number + changes.index(change)) % 2)
        way = Way(here, external)
        way.prepare()
        spec = CompareSpec(model="bad.onnx", runners=SIDES, feeds=FEEDS["file"])
        name, asked = action(spec)
        job = JobSpec(action=name, params=msgspec.to_builtins(asked))
        folder, lock = Workspace().create(job)
        os.close(lock)
        context = Changing(folder, 1, lambda change=change, way=way: change(way))
        with pytest.raises(LayerwiseError, match="changed while the job ran"):
            find_action(name, OFFERED)(context)
        _, again = run(job, folder, 2)
        fresh, expected = run(job)
        assert essence(again) == essence(expected)
        assert len(told(folder)) == 1
        assert tables(folder) == tables(fresh)


def test_external_weights_changed_with_size_and_time_kept_are_read_anew(here: pytest.MonkeyPatch) -> None:
    spec = CompareSpec(model="bad.onnx", runners=SIDES, marks=MarkSpec(everything=True))
    job = JobSpec(action="compare", params=msgspec.to_builtins(spec))
    for path in ("bad.onnx", "good.onnx"):
        chain(1 if path == "bad.onnx" else None, True, Path(path), wide=400)
    data, rows = Path("bad.onnx.data"), 4
    state = data.stat()
    assert state.st_size > identity.READ_WHOLE
    folder, _ = run(job, last=rows)
    with data.open("r+b") as file:
        file.seek(state.st_size // 64 * 42 + (20 << 10))  # where no sample is taken
        file.write(np.full(1000, 9, np.float32).tobytes())
    os.utime(data, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (data.stat().st_size, data.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)
    _, again = run(job, folder, 2)
    fresh, expected = run(job)
    assert essence(again) == essence(expected) and tables(folder) == tables(fresh)
    assert [text for text in told(folder) if "bad.onnx.data changed" in text]


@pytest.mark.parametrize("options", [
    {"config": {"config_script": "code.py"}}, {"config": {"config_postprocess": "code.py:postprocess"}},
    {"network": {"postprocess": ["code.py"]}}, {"network": {"plugins": ["code.so"]}},
    {"config": {"calibration": {"script": "code.py"}}},
], ids=str)  # fmt: skip
def test_rows_of_an_engine_that_a_script_took_part_in_are_never_taken_up(
    options: dict[str, Any], here: pytest.MonkeyPatch
) -> None:
    job = JobSpec(action="compare", params={"runners": [{"kind": "trt", "options": options}]})
    folder, lock = Workspace().create(job)
    os.close(lock)

    def attempt(number: int) -> list[str]:
        context = Counting(folder, number, 0)
        context.resumed(lambda: context.row("layers", {"attempt": number}))
        context.writer.close()
        return told(folder)

    assert attempt(1) == []
    ranges = folder / "artifacts" / "ranges.cache"
    ranges.parent.mkdir(exist_ok=True)
    ranges.write_text("of other weights")
    assert len(attempt(2)) == 1 and "reads is not known" in told(folder)[0]
    assert [row["attempt"] for row in rows_of(folder, "layers")] == [2] and not ranges.exists()


class Changing(JobContext):
    """Has something happen after its second row."""

    def __init__(self, folder: Path, attempt: int, work: Callable[[], None]) -> None:
        super().__init__(folder, attempt)
        self._rows, self._work = 0, work

    def row(self, table: str, row: dict[str, Any]) -> None:
        super().row(table, row)
        self._rows += 1
        if self._rows == 2:
            self._work()


def test_a_check_command_that_was_rewritten_answers_anew(here: pytest.MonkeyPatch) -> None:
    asked = DebugSpec(check=CheckSpec(command=["sh", "check.sh"]), until="4")
    job = JobSpec(action="debug_repeat", params=msgspec.to_builtins(asked))
    for before, after in (("exit 0", "exit 1"), ("exit 1", "exit 0"), ("exit 1", "exit 1")):
        Path("check.sh").write_text(before)
        folder, _ = run(job, last=3)
        Path("check.sh").write_text(after)
        _, again = run(job, folder, 2)
        fresh, expected = run(job)
        assert again["summary"] == expected["summary"]
        assert ["check.sh" in text for text in told(folder)] == [True] * (before != after)
        counted, others = tables(folder)["verdicts"], tables(fresh)["verdicts"]
        assert [json.loads(row)["verdict"] for row in counted] == [json.loads(row)["verdict"] for row in others]
