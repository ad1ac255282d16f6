"""However a worker ends, the job says so: with its card, the last event, and the command that repeats it."""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.jobs import TESTS, events_of, jobs_home, run, start_script, until, wait_for
from support.jobs import submit_forked as submit

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.processes.memory import oom_kills
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace

__all__ = ["jobs_home"]


@pytest.mark.parametrize("detached", [False, True])
@pytest.mark.parametrize(
    ("action", "kind", "summary", "detail"),
    [
        ("raise_error", "exception", "ValueError: this went wrong", "in raise_error"),
        ("usage_error", "error", "say --other instead", ""),
        ("segfault", "signal", "SIGSEGV", "in segfault"),
        ("abort", "signal", "SIGABRT", "in abort"),
        ("kill_self", "signal", "SIGKILL", ""),
        ("exit_three", "exception", "exit code 3", "leaving by the back door"),
    ],
)
def test_each_end_has_its_card(
    jobs_home: Workspace, action: str, kind: str, summary: str, detail: str, detached: bool
) -> None:
    command = ["layerwise", "run", "my model.onnx"]
    if detached:
        job = submit(jobs_home, action, command=command)
        view = wait_for(jobs_home, job, "failed")
    else:
        view = run(jobs_home, action, command=command)
    assert view.state == "failed"
    assert view.card is not None
    assert view.card["kind"] == kind
    assert summary in view.card["summary"]
    assert detail in view.card["detail"]
    assert view.card["command"] == "layerwise run 'my model.onnx'"
    assert view.card["last_event"]["type"] in ("log", "state")


def test_a_user_error_has_exit_code_2(jobs_home: Workspace) -> None:
    card = run(jobs_home, "usage_error").card
    assert card is not None
    assert (card["exit_code"], card["command"]) == (2, "layerwise jobs retry 1")


def test_a_worker_beyond_its_memory_limit_is_stopped(jobs_home: Workspace) -> None:
    view = run(jobs_home, "eat_memory", memory=300 << 20)
    assert view.card is not None
    assert view.card["kind"] == "oom"
    assert "the limit is 300 MiB; LAYERWISE_MEMORY=SIZE" in view.card["summary"]


def test_an_oom_kill_by_the_kernel_has_its_card(jobs_home: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real kill: the command line runs in a control group with 128 MB, as in a container."""
    monkeypatch.setenv("LAYERWISE_MEMORY", "none")
    group = Path("/sys/fs/cgroup/memory/layerwise-test")
    if not os.access(group.parent / "cgroup.procs", os.W_OK):
        pytest.skip("no control group (version 1) of our own here")
    group.mkdir(exist_ok=True)
    (group / "memory.limit_in_bytes").write_text(str(128 << 20))
    code = (
        f"import os; open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
        "from support.jobs import run\nfrom layerwise._tool.backends.jobs.workspace.store import Workspace\n"
        "run(Workspace(), 'eat_memory')"
    )
    before = oom_kills()
    assert start_script(code).wait(60) == 0
    assert oom_kills() == before  # in another group than ours
    until(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()
    card = jobs_home.view(1).card
    assert card is not None
    assert (card["kind"], "memory ran out" in card["summary"]) == ("oom", True)


@pytest.mark.parametrize("action", ["hang", "native_hang", "stubborn"])
def test_a_timeout_shows_where_the_worker_hung(jobs_home: Workspace, action: str) -> None:
    job = submit(jobs_home, action, timeout=0.5)
    view = wait_for(jobs_home, job, "failed")
    assert view.card is not None
    assert view.card["kind"] == "timeout"
    assert f"in {action}" in view.card["detail"]
    assert view.ended is not None and view.started is not None
    assert 0.5 <= view.ended - view.started < 5.0


def test_unknown_actions_and_folders_fail_with_a_card(jobs_home: Workspace) -> None:
    assert "there is no action" in str((run(jobs_home, "no_such").card or {})["summary"])
    missing = run(jobs_home, "rows", cwd="/no/such/folder").card or {}
    assert (missing["kind"], "/no/such/folder" in missing["summary"]) == ("error", True)


def test_a_damaged_spec_fails_without_a_hang(jobs_home: Workspace) -> None:
    job = submit(jobs_home, "raise_error")
    wait_for(jobs_home, job, "failed")
    (jobs_home.folder(job) / "spec.json").write_text("{oops")
    with pytest.raises(BadFile, match=r"spec\.json"):
        asyncio.run(JobClient(jobs_home).retry(job))
    assert jobs_home.view(job).state == "failed"


def test_worker_output_goes_to_the_log(jobs_home: Workspace) -> None:
    view = run(jobs_home, "noisy")
    assert (view.folder / "log.txt").read_bytes() == b"native \x1b[31mprint\npython print\n"


def test_large_rows_and_results_are_returned(jobs_home: Workspace) -> None:
    view = run(jobs_home, "big_row")
    assert view.state == "done"
    assert view.result == {"text": "y" * 100_000}
    assert [len(event["row"]["text"]) for event in events_of(jobs_home, view.id) if event["type"] == "row"] == [100_000]


def test_a_listener_that_raises_stops_delivery_but_not_the_job(jobs_home: Workspace) -> None:
    from layerwise._tool.backends.jobs.inline import run_inline

    told = []

    def listen(event: dict[str, object]) -> None:
        told.append(event["type"])
        if event["type"] == "row":
            raise ValueError("a report's own mistake")

    with pytest.raises(ValueError, match="a report's own mistake"):
        run_inline(JobSpec(action="test_rows", params={"n": 7}), listen, jobs_home)
    view = jobs_home.view(1)
    assert view.state == "done" and view.counts == {"layers": 7}
    assert told.count("row") == 1


FEW = """
import sys
from support.few_processes import few_processes
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
few_processes(3, 320_001)  # this one, the guard and the worker
told = []
view = run_inline(JobSpec(action="test_rows", params={"n": 7}), told.append, Workspace())
print(view.state, [event["type"] for event in told].count("row"), told[-1].get("state"))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a user without other processes")
def test_where_no_thread_may_be_started_all_is_told_in_the_end(jobs_home: Workspace, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FEW]
    program = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert program.stdout.split() == ["done", "7", "done"], program.stderr


def test_waiting_for_a_slow_listener_uses_no_cpu(jobs_home: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from layerwise._tool.backends.jobs.inline import run_inline
    from layerwise._tool.backends.jobs.waiting.sleeper import Sleeper

    sleeps = []
    sleep = Sleeper.sleep
    monkeypatch.setattr(Sleeper, "sleep", lambda *args, **named: sleeps.append(None) or sleep(*args, **named))
    during = []

    def listen(event: dict[str, object]) -> None:
        if during:
            return
        until(lambda: jobs_home.view(1).state == "done")
        taken = [os.open("/dev/null", os.O_RDONLY) for _ in range(16)]  # the numbers that the worker's end gave back
        before = len(sleeps)
        with suppress(AssertionError):
            until(lambda: len(sleeps) > before + 20, seconds=0.5)
        during.append(len(sleeps) - before)
        for file in taken:
            os.close(file)

    run_inline(JobSpec(action="test_rows", params={"n": 7}), listen, jobs_home)
    assert during[0] < 5


def test_a_job_gets_its_environment(jobs_home: Workspace) -> None:
    assert str(TESTS) in os.environ["PYTHONPATH"]
    view = run(jobs_home, "environment", {"names": ["CUDA_VISIBLE_DEVICES", "MINE"]}, env={"MINE": "1"}, cwd="/")
    assert view.result == {"CUDA_VISIBLE_DEVICES": "", "MINE": "1", "cwd": "/"}
