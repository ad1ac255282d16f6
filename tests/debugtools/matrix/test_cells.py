"""A cell: what its key hangs on, what a killed predecessor leaves, who may run it, and what is sent of it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import onnx
import pytest
from msgspec.structs import replace
from support.jobactions import EXTRA_ACTIONS
from support.matrices.sample import layers

from layerwise._tool.backends.cluster.protocol import Ended
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes.conclude import journal
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.cluster.versions import own_versions
from layerwise._tool.debugtools.compare.rows import LayerRow, Required
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.matrix import cell as cell_module
from layerwise._tool.debugtools.matrix.cell import run_cell, run_text
from layerwise._tool.debugtools.matrix.flight import Flight
from layerwise._tool.debugtools.matrix.keys import Keys
from layerwise._tool.debugtools.matrix.repeating import repeated
from layerwise._tool.debugtools.matrix.rows import Receipt
from layerwise._tool.debugtools.matrix.spec import CellSpec, Order
from layerwise._tool.debugtools.matrix.store import CellStore, Record

TESTS = Path(__file__).parents[2]


def cell(action: str = "test_rows", gpu: bool = False, **params: object) -> CellSpec:
    return CellSpec(
        model="m", side="s", feed="", action="run", gpu=gpu, job=JobSpec(action=action, params=params, cpus=0)
    )


@pytest.fixture
def store(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> CellStore:
    monkeypatch.setenv("LAYERWISE_EXTRA_ACTIONS", EXTRA_ACTIONS)
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}{os.pathsep}{TESTS}")
    return CellStore(Workspace())


def order(store: CellStore, spec: CellSpec, **more: object) -> Order:
    root = store.workspace.root
    return Order(key="k" * 32, cell=spec, workspace=str(root), stop=str(root / "stop"), **more)  # type: ignore[arg-type]


def test_a_key_is_of_bytes_and_words_and_not_of_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key(folder: str, *, fault: bool = False, name: str = "m", **spec: object) -> str:
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        Path("m.data").unlink(missing_ok=True)
        onnx.save(layers(0, fault=fault), "m.onnx", save_as_external_data=True, size_threshold=0, location="m.data")
        params = msgspec.to_builtins(CompareSpec(model="m.onnx", **spec))  # type: ignore[arg-type]
        job = JobSpec(action="compare", params=params, cwd=str(Path.cwd()), title=name, command=[name])
        made = replace(cell(), job=job)
        return Keys(own_versions()).key(made).key

    plain = key("a")
    assert plain == key("b", name="other"), "neither its folder nor what it is called"
    assert plain != key("a", fault=True), "external data are bytes of the model"
    assert plain != key("a", fail_fast=True)
    job = JobSpec(action="compare", params={"model": "m.onnx"})
    assert Keys({"onnxruntime": "1"}).key(replace(cell(), job=job)).key != Keys({}).key(replace(cell(), job=job)).key


def test_a_crash_is_recorded_once_and_a_finished_cell_is_not_run_again(store: CellStore) -> None:
    bad = order(store, cell("test_segfault"))
    first = run_cell(bad)
    assert (first.verdict, first.kind, first.kept) == ("error", "signal", True)
    assert run_cell(bad) == first and store.workspace.ids() == [first.job]
    assert run_cell(replace(bad, again="tomorrow")).job != first.job


def lost_job(store: CellStore, spec: CellSpec) -> int:
    """A job whose supervisor and worker are gone."""
    folder, lock = store.workspace.create(spec.job)
    with journal(folder) as writer:
        writer.write("state", state="running", attempt=1, pid=0)
    os.close(lock)
    return int(folder.name)


def test_what_a_killed_worker_left_is_taken_up_but_not_for_ever(store: CellStore) -> None:
    ask = order(store, cell(n=1), losses=2)
    job = lost_job(store, ask.cell)
    store.write(ask.key, Record(jobs={"run": job}))
    done = run_cell(ask)
    assert (done.verdict, done.job, done.losses) == ("passed", job, 1)
    assert store.workspace.view(job).attempt == 2 and store.workspace.ids() == [job]
    store.write(ask.key, Record(jobs={"run": lost_job(store, ask.cell)}, losses=1))
    given_up = run_cell(ask)
    assert (given_up.verdict, given_up.kept) == ("lost", True) and "2 times" in given_up.text
    ask = replace(order(store, cell("test_kill_self"), losses=2), key="s" * 32)
    given_up = run_cell(ask)
    assert store.workspace.view(given_up.job).attempt == 2, "who killed it is not known"
    assert (given_up.verdict, given_up.kept) == ("lost", True) and "2 times" in given_up.text


def test_what_follows_a_failure_is_tried_again_where_it_could_not_be_carried_out(store: CellStore) -> None:
    folder, lock = store.workspace.create(cell().job)
    with journal(folder) as writer:
        writer.write("result", data={"passed": False, "n_compared": 1})
        writer.write("state", state="done", attempt=1)
    os.close(lock)
    ran = int(folder.name)
    ask = order(store, replace(cell(), locate=JobSpec(action="test_usage_error", cpus=0)))
    store.write(ask.key, Record(jobs={"run": ran}))
    for attempt in (1, 2):
        found = run_cell(ask)
        assert (found.verdict, found.kept, found.pending) == ("failed", False, "locate: say --other instead")
        assert store.workspace.view(found.locate).attempt == attempt and store.workspace.view(ran).attempt == 1
    crash = replace(ask, cell=replace(ask.cell, locate=JobSpec(action="test_segfault", cpus=0)))
    store.write(ask.key, Record(jobs={"run": ran}))
    assert run_cell(crash).kept, "a crash is there to stay"
    store.write(ask.key, Record(jobs={"run": ran}))
    Path(ask.stop).touch()
    assert not run_cell(ask).kept, "the matrix was cancelled before it was located"


def test_a_cell_is_run_by_one_process_and_not_after_a_stop(store: CellStore) -> None:
    ask = order(store, cell(n=1))
    with store.held(ask.key) as held:
        assert held and run_cell(ask).verdict == "elsewhere"
    assert run_cell(replace(ask, stop=str(store.workspace.root / "gone" / "stop"))).verdict == "refused"
    Path(ask.stop).touch()
    assert run_cell(ask).verdict == "cancelled" and not store.workspace.ids()


def test_another_version_is_refused_with_both_named_before_the_rest_is_read() -> None:
    text = msgspec.json.encode({"key": "k", "versions": {"layerwise": "9.9.9"}, "new": 1}).decode()
    said = msgspec.json.decode(run_text(text), type=Receipt)
    assert said.verdict == "refused" and "9.9.9" in said.text and own_versions()["layerwise"] in said.text


def compared(store: CellStore, needed: float) -> JobView:
    """A comparison whose one tensor would need `needed` times its tolerance."""
    folder, lock = store.workspace.create(JobSpec(action="compare"))
    row = LayerRow(tensor="y", atol=1e-5, rtol=0.0, required=Required(abs=needed * 1e-5), passed=needed <= 1)
    with journal(folder) as writer:
        writer.write("row", table="layers", row=row)
        writer.write("state", state="done", attempt=1)
    os.close(lock)
    return store.workspace.view(int(folder.name))


def test_what_fails_near_its_bound_is_repeated_until_it_is_sure(store: CellStore) -> None:
    job = JobSpec(action="compare", params=msgspec.to_builtins(CompareSpec(runners=[RunnerSpec(kind="onnxrt")])))

    def told(*needed: float) -> tuple[str, int] | None:
        steps: list[str] = []

        def run(step: str, spec: JobSpec) -> JobView:
            steps.append(step)
            assert spec.params["runners"][0]["threads"], "the rounding is another"
            return compared(store, needed[len(steps)])

        found = repeated(job, compared(store, needed[0]), run)
        return None if found is None else (found.finding, len(steps))

    assert told(50.0) is None, "far beyond its bound there is nothing to ask"
    assert told(1.5, 1.5, 1.5) == ("regression", 2)
    assert told(1.1, 1.2, 1.3, 1.2, 1.1) == ("regression", 3)
    assert told(1.1, 0.5, 0.4, 0.5, 0.6, 0.5, 0.4, 0.3) == ("chance", 6)
    assert repeated(job, compared(store, 1.5), lambda step, spec: None) is None, "it was stopped"


def test_cells_of_one_process_take_turns_but_for_waiting(store: CellStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that are the first to read a Struct of msgspec's with others in it crash."""
    inside, turns, most = threading.Barrier(2), [0], [0]
    see_through, receipt_of = cell_module.see_through, cell_module.receipt_of

    def both_wait(*args: object, **more: object) -> JobView:
        inside.wait(60)
        return see_through(*args, **more)  # type: ignore[arg-type]

    def counted(*args: object) -> Receipt:
        turns[0] += 1
        most[0] = max(most[0], turns[0])
        found = receipt_of(*args)  # type: ignore[arg-type]
        turns[0] -= 1
        return found

    monkeypatch.setattr(cell_module, "see_through", both_wait)
    monkeypatch.setattr(cell_module, "receipt_of", counted)
    found: list[str] = []
    asked = [replace(order(store, cell(n=1)), key=key * 32) for key in "ab"]
    threads = [threading.Thread(target=lambda ask=ask: found.append(run_cell(ask).verdict)) for ask in asked]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (found, most) == (["passed", "passed"], [1])


def test_structs_are_read_by_several_threads_once_they_are_settled() -> None:
    assert subprocess.run([sys.executable, "-c", _TWO_READERS], check=False).returncode == 0


_TWO_READERS = """
import threading, msgspec
from layerwise._tool.backends.specs import settle_types

class Inner(msgspec.Struct): x: "slow()"
class Outer(msgspec.Struct):
    a: int
    inner: Inner
    b: int

reads, other = threading.Event(), threading.Event()
def slow():
    reads.set()
    other.wait(60 if threading.current_thread() is not threading.main_thread() else 0)
    return int

settle_types()  # without it the second reader meets a half of what the first one makes
first = threading.Thread(target=lambda: msgspec.convert({"a": 1, "inner": {"x": 1}, "b": 1}, Outer))
first.start()
reads.wait(60)
msgspec.convert({"a": 1, "inner": {"x": 1}, "b": 1}, Outer)
other.set()
first.join()
"""


class Runs:
    """Runs nothing: what is started ends as told, in the order of starting."""

    def __init__(self, slots: int, gpus: int, *ends: Ended | None) -> None:
        self._slots, self._gpus, self._ends = slots, gpus, list(ends)
        self.out: dict[str, bool] = {}
        self.most = [0, 0]

    def slots(self, gpu: bool) -> int:
        return self._gpus if gpu else self._slots

    def versions(self) -> dict[str, dict[str, str]]:
        return {}

    def start(self, name: str, text: str, gpu: bool) -> None:
        self.out[name] = gpu
        self.most = [max(self.most[0], len(self.out)), max(self.most[1], sum(self.out.values()))]

    def wait(self, seconds: float) -> Ended | None:
        if not self.out or not seconds:
            return None
        name = next(iter(self.out))
        del self.out[name]
        special = self._ends.pop(0) if self._ends else None
        passed = msgspec.json.encode(Receipt(key=name, verdict="passed")).decode()
        return Ended(name, passed) if special is None else replace(special, name=name)

    def close(self) -> None: ...


def test_no_more_are_out_than_there_is_room_for_and_what_is_lost_is_sent_again(store: CellStore) -> None:
    orders = [replace(order(store, cell(gpu=i % 2 == 0)), key=f"{i:032}") for i in range(10)]
    runs = Runs(4, 2, None, Ended("", error="gone", lost=True), None, Ended("", error="gone", lost=True))
    found = [receipt.key for receipt in Flight(runs, store, lambda key, job: None).run(orders)]
    assert sorted(found) == [one.key for one in orders], "each once"
    assert runs.most == [4, 2]


def test_what_another_process_runs_is_waited_for_and_taken_up(store: CellStore) -> None:
    taken, freed = (replace(order(store, cell()), key=key * 32) for key in "ab")
    elsewhere = [
        Ended("", msgspec.json.encode(Receipt(key=one.key, verdict="elsewhere")).decode()) for one in (taken, freed)
    ]
    with store.held(taken.key):  # the other one's process is gone: it is run here
        store.write(taken.key, Record(receipt=Receipt(key=taken.key, verdict="failed", job=7)))
        runs = Runs(2, 2, *elsewhere)
        found = {one.key[0]: one.verdict for one in Flight(runs, store, lambda key, job: None).run([taken, freed])}
    assert found == {"a": "failed", "b": "passed"}


def test_a_worker_of_another_version_ends_the_matrix(store: CellStore) -> None:
    refusal = Receipt(key="k", verdict="refused", kind="versions", text="node7: layerwise is 2 here and 1 there")
    runs = Runs(1, 1, Ended("", msgspec.json.encode(refusal).decode()))
    with pytest.raises(LayerwiseError, match="node7: layerwise is 2 here and 1 there"):
        list(Flight(runs, store, lambda key, job: None).run([order(store, cell())]))
