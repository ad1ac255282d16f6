"""Searches whose processes die: a sample of tests/support/soak_search, and kills at chosen instants."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import onnx
import psutil
import pytest
from support.debugging import saved
from support.jobs import events_of, jobs_home, kill, pids_of, until, wait_for
from support.models import conv_net, mlp
from support.soak_search import soak

from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.spec import CheckSpec, DebugSpec

__all__ = ["jobs_home"]


def test_sample_of_the_soak(jobs_home: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines: list[str] = []
    assert soak(tmp_path, 6, 7, lines.append) == []
    assert any("kills" in line and not line.endswith("0 kills") for line in lines)


def verdicts(home: Workspace, job: int) -> list[dict[str, Any]]:
    return [e["row"] for e in events_of(home, job) if e["type"] == "row" and e["table"] == "verdicts"]


def test_a_check_in_flight_dies_with_the_worker_and_is_done_again(
    jobs_home: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third check never ends, until the worker is killed; then everything goes on from the second verdict."""
    monkeypatch.chdir(tmp_path)
    saved(tmp_path, mlp(layers=4), "/fc2/Add")
    (tmp_path / "check.sh").write_text(
        f"echo run >> {tmp_path}/runs\n"
        f"[ $(wc -l < {tmp_path}/runs) = 3 ] && [ ! -e {tmp_path}/go ] && echo $$ > {tmp_path}/pid && sleep 1000\n"
        "! grep -q /fc2/Add polygraphy_debug.onnx\n"
    )
    spec = DebugSpec(
        compare=CompareSpec(model="bad.onnx"), check=CheckSpec(command=["sh", "check.sh"]), mode="bisect",
        output="reduced.onnx",
    )  # fmt: skip
    job = JobSpec(action="debug_reduce", params=msgspec.to_builtins(spec), cpus=0, cwd=str(tmp_path))
    number = asyncio.run(JobClient(jobs_home, ACTIONS).submit(job))
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    hanging, before = int((tmp_path / "pid").read_text()), verdicts(jobs_home, number)
    assert len(before) == 2
    kill(pids_of(jobs_home, number)[0])
    wait_for(jobs_home, number, "failed")
    until(lambda: not Path(f"/proc/{hanging}").exists())
    (tmp_path / "go").touch()
    asyncio.run(JobClient(jobs_home, ACTIONS).retry(number))
    view = wait_for(jobs_home, number, "done", seconds=60)
    after = verdicts(jobs_home, number)
    assert after[: len(before)] == before
    assert [node["node"] for node in view.result["found"][0]["nodes"]] == ["/fc2/Add"]
    checked = [row for row in after if row["by"] == "command"]
    assert len((tmp_path / "runs").read_text().splitlines()) == len(checked) + 1
    assert [node.name for node in onnx.load("reduced.onnx").graph.node] == ["/fc2/Add"]


def test_a_candidate_that_brings_the_worker_down_is_skipped(jobs_home: Workspace, tmp_path: Path) -> None:
    """SIGSEGV, as native code dies by it, while a candidate runs; SIGKILL would have been somebody else's."""
    bad, good = saved(tmp_path, conv_net(channels=8, size=48), "conv1")
    slow = [RunnerSpec(kind="reference"), RunnerSpec(kind="onnxrt", threads=1, model=str(good))]
    spec = DebugSpec(compare=CompareSpec(model=str(bad), runners=slow), mode="linear")
    number = asyncio.run(
        JobClient(jobs_home, ACTIONS).submit(
            JobSpec(action="debug_reduce", params=msgspec.to_builtins(spec), cwd=str(tmp_path))
        )
    )

    def trying() -> str:
        rows = [e["row"] for e in events_of(jobs_home, number) if e["type"] == "row" and e["table"] == "search"]
        return str(next((row["trying"] for row in reversed(rows) if "trying" in row), ""))

    def stopped_at() -> str:
        """The candidate that runs, the worker stopped; "", and the worker goes on, if none does at this moment."""
        worker = psutil.Process(pids_of(jobs_home, number)[0])
        worker.suspend()
        until(lambda: worker.status() == psutil.STATUS_STOPPED)
        key = trying()
        if key and key not in [row["key"] for row in verdicts(jobs_home, number)]:
            return key
        worker.resume()
        return ""

    until(trying)
    key = until(stopped_at)
    worker = pids_of(jobs_home, number)[0]
    os.kill(worker, signal.SIGSEGV)
    os.kill(worker, signal.SIGCONT)
    assert "SIGSEGV" in wait_for(jobs_home, number, "failed").card["summary"]
    assert key == trying()
    asyncio.run(JobClient(jobs_home, ACTIONS).retry(number))
    view = wait_for(jobs_home, number, "done", seconds=90)
    (skipped,) = [row for row in verdicts(jobs_home, number) if row["key"] == key]
    assert skipped["verdict"] == "skip" and "SIGSEGV" in skipped["note"]
    found = [node["node"] for node in view.result["found"][0]["nodes"]]
    assert "conv1" in found and len(found) <= 2  # the skipped one may be what would have shown that one more can go
