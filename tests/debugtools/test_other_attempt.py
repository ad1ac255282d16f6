"""Another attempt of a job whose model, inputs or reference have changed meanwhile: nothing of before is mixed in."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.debugging import as_read

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.jobs import identity
from layerwise._tool.backends.jobs.actions import find_action
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.earlier_attempts import rows_of
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.log import CRITICAL, Log
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools import ACTIONS as OFFERED
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.spec import CheckSpec, DebugSpec, PrecisionSpec
from layerwise._tool.tui.cli.json_output import Collector
from layerwise._tool.tui.cli.run.report import CompareReport
from layerwise._tool.tui.controllers.errors_page import ErrorsController
from layerwise._tool.tui.state.debugging import DebugState
from layerwise._tool.tui.state.errors_page import ErrorsState
from layerwise._tool.tui.state.session import Session
from layerwise._tool.tui.state.signal import Signal

LAYERS = 5
SIDES = [
    RunnerSpec(kind="onnxrt", threads=1, name="new"),
    RunnerSpec(kind="onnxrt", threads=1, name="old", model="good.onnx"),
]
LOADER = """import numpy as np
def load_data():
    yield {"x": np.load("numbers.npy")}
"""
UNNAMED = """import glob
import numpy as np
def load_data():
    yield {"x": np.load(glob.glob("num*")[0])}
"""


class Killed(BaseException):
    """The attempt ends here."""


class Counting(JobContext):
    """A worker that is killed once it has written `last` rows."""

    def __init__(self, folder: Path, attempt: int, last: int) -> None:
        super().__init__(folder, attempt)
        self._left = last

    def row(self, table: str, row: dict[str, Any]) -> None:
        super().row(table, row)
        self._left -= 1
        if not self._left:
            raise Killed


def chain(bad: int | None, external: bool, path: Path, wide: int = 4) -> None:
    """Products and Tanh; the weight of layer `bad` is off."""
    rng = np.random.default_rng(5)
    nodes, weights, x = [], [], "x"
    for k in range(LAYERS):
        values = rng.standard_normal((wide, wide)).astype(np.float32) / 2
        weights.append(numpy_helper.from_array(values * np.float32(1.3 if k == bad else 1), f"w{k}"))
        nodes.append(helper.make_node("MatMul", [x, f"w{k}"], [f"m{k}"], f"product{k}"))
        nodes.append(helper.make_node("Tanh", [f"m{k}"], [f"t{k}"], f"tanh{k}"))
        x = f"t{k}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, wide]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    outside = {"save_as_external_data": True, "location": f"{path.name}.data", "size_threshold": 0}
    (path.parent / f"{path.name}.data").unlink(missing_ok=True)
    onnx.save(model, path, **(outside if external else {}))


def numbers(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal((2, 4)).astype(np.float32)


def nothing(how: "Way") -> None:
    """Nothing changes."""


def touched(how: "Way") -> None:
    for path in (*Path().glob("*.onnx*"), *Path().glob("in*")):
        os.utime(path)


def weights(how: "Way") -> None:
    chain(3, how.external, Path("bad.onnx"))


def structure(how: "Way") -> None:
    chain(3, not how.external, Path("bad.onnx"))


def data_alone(how: "Way") -> None:
    file = Path("bad.onnx.data" if how.external else "bad.onnx")
    chain(3, how.external, Path("other.onnx"))
    file.write_bytes(Path("other.onnx.data" if how.external else "other.onnx").read_bytes())


def reference(how: "Way") -> None:
    chain(4, False, Path("good.onnx"))


def inputs(how: "Way") -> None:
    save_feeds("inputs.json", [{"x": numbers(8)}])
    np.save("numbers.npy", numbers(8))


def version(how: "Way") -> None:
    how.patch.setattr(identity, "versions", lambda: {"onnxruntime": "another"})


CHANGES: dict[Callable[["Way"], None], str] = {
    nothing: "", touched: "", weights: "bad.onnx", structure: "bad.onnx", data_alone: "bad.onnx",
    reference: "good.onnx", inputs: "", version: "onnxruntime",
}  # fmt: skip
"""What changes between two attempts, and what is told to have; "" where nothing has to be dropped, or it depends."""


def compare(spec: CompareSpec) -> tuple[str, Any]:
    return "compare", msgspec.structs.replace(spec, marks=MarkSpec(everything=True))


def locate(spec: CompareSpec) -> tuple[str, Any]:
    return "locate", LocateSpec(compare=spec)


def reduce(spec: CompareSpec) -> tuple[str, Any]:
    return "debug_reduce", DebugSpec(compare=spec, output="small.onnx")


def bisect(spec: CompareSpec) -> tuple[str, Any]:
    return "debug_bisect", DebugSpec(compare=spec, output="small.onnx", mode="bisect")


def precision(spec: CompareSpec) -> tuple[str, Any]:
    alone = msgspec.structs.replace(spec, runners=[], tolerance=ToleranceSpec(atol={"": 1e-4}, rtol={"": 1e-4}))
    return "debug_precision", PrecisionSpec(search=DebugSpec(compare=alone, output="mixed.onnx"))


ACTIONS = [compare, locate, reduce, bisect, precision]
FEEDS = {
    "seed": FeedSpec(), "file": FeedSpec(files=["inputs.json"]), "loader": FeedSpec(script="loader.py"),
    "unnamed": FeedSpec(script="unnamed.py"),
}  # fmt: skip


class Way:
    """How a job is run: the action, where its weights and inputs are, after how many rows its first attempt ends."""

    def __init__(self, patch: pytest.MonkeyPatch, external: bool) -> None:
        self.patch, self.external = patch, external

    def prepare(self) -> None:
        chain(1, self.external, Path("bad.onnx"))
        chain(None, False, Path("good.onnx"))
        save_feeds("inputs.json", [{"x": numbers(7)}])
        np.save("numbers.npy", numbers(7))
        Path("loader.py").write_text(LOADER)
        Path("unnamed.py").write_text(UNNAMED)


def run(job: JobSpec, folder: Path | None = None, attempt: int = 1, last: int = 0) -> tuple[Path, Any]:
    """An attempt as a worker makes it; its folder, and the result, None where it is killed."""
    if folder is None:
        folder, lock = Workspace().create(job)
        os.close(lock)
    context = Counting(folder, attempt, last)
    context.writer.write("state", state="queued", attempt=attempt)
    try:
        result = as_read(find_action(job.action, OFFERED)(context))
    except Killed:
        return folder, None
    finally:
        context.writer.close()
    return folder, result


def essence(result: dict[str, Any]) -> str:
    """What a job says, without paths and times."""
    names = ("passed", "n_rows", "n_failed", "first_bad", "worst", "canary", "suspects", "summary")
    found = [(entry.get("nodes"), entry.get("measured")) for entry in result.get("found") or []]
    return json.dumps({"found": found, **{name: result.get(name) for name in names}}, sort_keys=True, default=str)


def told(folder: Path) -> list[str]:
    return [
        event["text"] for event in read_events(folder) if event["type"] == "warning" and "not used" in event["text"]
    ]


def tables(folder: Path) -> dict[str, list[str]]:
    """The tables of `--json` and the app, without times."""
    collector = Collector()
    for event in read_events(folder):
        collector.event(event)
    return {name: [_timeless(row) for row in rows] for name, rows in collector.tables.items() if name in _SAME}


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
    listed = [_timeless(msgspec.to_builtins(errors.table.row(place))) for place in range(len(errors.table))]
    worst = report.totals.worst and report.totals.worst.tensor
    return [_timeless(row) for row in debug.rows], listed, (report.totals.rows, report.totals.failed, worst)


_SAME = ("layers", "verdicts", "precision")


def _timeless(row: object) -> str:
    fields = msgspec.to_builtins(row).items()
    return json.dumps({key: value for key, value in fields if key not in ("seconds", "by", "n")}, sort_keys=True)


@pytest.fixture
def here(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    yield monkeypatch


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


@pytest.mark.parametrize("action", [reduce, bisect, precision], ids=lambda action: action.__name__)
def test_a_replay_of_another_model_is_not_taken(
    action: Callable[[CompareSpec], tuple[str, Any]], here: pytest.MonkeyPatch
) -> None:
    spec = CompareSpec(model="bad.onnx", runners=SIDES, feeds=FEEDS["file"])
    name, asked = action(spec)
    for number, change in enumerate((nothing, touched, weights, structure, data_alone, inputs)):
        external = bool((number + ACTIONS.index(action)) % 2)
        way = Way(here, external)
        way.prepare()
        label = f"{change.__name__}, external: {external}"
        run(JobSpec(action=name, params=with_replay(asked, save_replay="replay.json")))
        change(way)
        folder, again = run(JobSpec(action=name, params=with_replay(asked, load_replay="replay.json")))
        fresh, expected = run(JobSpec(action=name, params=msgspec.to_builtins(asked)))
        taken = [row for row in verdicts(folder) if row["by"] == "replay"]
        same = change in (nothing, touched)
        assert bool(taken) is same and bool(told(folder)) is not same, label
        assert essence(again)[:400] == essence(expected)[:400], label
        assert len(verdicts(folder)) == len(verdicts(fresh)), label
        change(way)
        strip_ours(Path("replay.json"))  # as Polygraphy writes it
        folder, _ = run(JobSpec(action=name, params=with_replay(asked, load_replay="replay.json")))
        assert not told(folder), label
        assert any(row["by"] == "replay" for row in verdicts(folder)), label


def test_a_replay_of_other_versions_options_or_tolerances_is_not_taken(here: pytest.MonkeyPatch) -> None:
    Way(here, False).prepare()
    fast, *others = SIDES
    basic = msgspec.structs.replace(fast, graph_optimization_level="basic")
    plain = CompareSpec(model="bad.onnx", runners=SIDES, feeds=FEEDS["file"])
    run(JobSpec(action="debug_reduce", params=with_replay(reduce(plain)[1], save_replay="replay.json")))

    def taken(spec: CompareSpec) -> bool:
        folder, _ = run(JobSpec(action="debug_reduce", params=with_replay(reduce(spec)[1], load_replay="replay.json")))
        found = any(row["by"] == "replay" for row in verdicts(folder))
        assert found != bool(told(folder))
        return found

    assert taken(plain)
    assert taken(msgspec.structs.replace(plain, runners=[msgspec.structs.replace(fast, name="other"), *others]))
    assert not taken(msgspec.structs.replace(plain, runners=[basic, *others]))
    assert not taken(msgspec.structs.replace(plain, tolerance=ToleranceSpec(atol={"": 1e-3})))
    here.setattr(identity, "versions", lambda: {"onnxruntime": "another"})
    assert not taken(plain)


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


def with_replay(asked: DebugSpec | PrecisionSpec, **more: str) -> dict[str, Any]:
    if isinstance(asked, DebugSpec):
        return dict(msgspec.to_builtins(msgspec.structs.replace(asked, **more)))
    return dict(
        msgspec.to_builtins(msgspec.structs.replace(asked, search=msgspec.structs.replace(asked.search, **more)))
    )


def verdicts(folder: Path) -> list[dict[str, Any]]:
    return [event["row"] for event in read_events(folder) if event.get("table") == "verdicts"]


def strip_ours(path: Path) -> None:
    entries = json.loads(path.read_text())
    for entry in entries.values():
        entry["state"] = {key: value for key, value in entry["state"].items() if key == "num_nodes"}
    path.write_text(json.dumps(entries))
