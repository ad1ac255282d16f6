"""The worker that starts before its command is understood: which job it runs, and what is left where there is none."""

import subprocess
import sys
from pathlib import Path

import onnx
import psutil
import pytest
from support.cli import fresh_layerwise
from support.jobs import jobs_home, kill, processes_of, until
from support.models import mlp

from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.log import Log
from layerwise._tool.tui.cli.ahead import take_worker, worker_ahead
from layerwise._tool.tui.cli.submit import run_here

__all__ = ["jobs_home"]

_READY = """
import sys
from layerwise._tool.tui.cli.ahead import worker_ahead
with worker_ahead([]):
    print(flush=True)
    sys.stdin.read()
"""


def workers(home: Workspace) -> list[int]:
    """The processes that wait for a job of the workspace, or work for one; none in the moment in which one starts."""
    return [int(line.split()[0]) for line in processes_of(home) if "spare_worker" in line]


def test_it_runs_the_first_job_of_the_command_and_no_other(
    jobs_home: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = []

    def listen(event: dict[str, object]) -> None:
        if event.get("state") == "running":
            ran.append(event["pid"])

    with worker_ahead(["model.onnx", "--onnxrt"]):
        (ready,) = until(lambda: workers(jobs_home))
        for _ in range(2):
            assert run_here(JobSpec(action="test_rows", params={"n": 1}), listen, Log()) == 0
        assert take_worker() is None
    assert ran[0] == ready != ran[1]


@pytest.mark.parametrize("word", ["--help", "-h", "--detach"])
def test_none_starts_where_nothing_is_run_here(jobs_home: Workspace, word: str) -> None:
    with worker_ahead(["model.onnx", word]):
        assert workers(jobs_home) == []


def test_a_job_is_run_where_it_has_died(jobs_home: Workspace) -> None:
    with worker_ahead([]):
        (ready,) = until(lambda: workers(jobs_home))
        kill(ready)
        until(lambda: psutil.Process(ready).status() == psutil.STATUS_ZOMBIE)
        assert run_here(JobSpec(action="test_rows", params={"n": 1}), lambda event: None, Log()) == 0


@pytest.mark.parametrize("options", [["--onnxrt", "--no-such-option"], ["--onnxrt", "--gen-script", "again.py"]])
def test_a_command_that_runs_no_job_leaves_none(jobs_home: Workspace, tmp_path: Path, options: list[str]) -> None:
    onnx.save(mlp(), tmp_path / "m.onnx")
    done = fresh_layerwise("run", "m.onnx", *options, cwd=tmp_path)
    assert done.returncode == (2 if "--no-such-option" in options else 0), done.stderr
    assert processes_of(jobs_home) == []
    assert jobs_home.list_jobs() == []


def test_it_does_not_outlive_a_command_that_is_killed(jobs_home: Workspace) -> None:
    command = subprocess.Popen([sys.executable, "-c", _READY], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"\n"
        assert len(until(lambda: workers(jobs_home))) == 1
        command.kill()
    until(lambda: not processes_of(jobs_home))
