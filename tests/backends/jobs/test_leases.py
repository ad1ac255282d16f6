"""GPU leases and CPU slots: never two holders, granted in order, released with their holder."""

import asyncio
import os
from pathlib import Path

import pytest
from support.jobs import (
    jobs_home,
    kill,
    leases_taken,
    pids_of,
    row_of,
    run,
    start_script,
    submit,
    submit_warm,
    until,
    wait_for,
)

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.workspace import leases
from layerwise._tool.backends.jobs.workspace.gpus import visible_gpus
from layerwise._tool.backends.jobs.workspace.leases import Waiter
from layerwise._tool.backends.jobs.workspace.store import Workspace

__all__ = ["jobs_home"]

_GPUS = ["GPU-aaaa-1", "GPU-bbbb-2"]


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two GPUs, as nvidia-smi would tell, and without nvidia-ml-py."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n" + "\n".join(f"echo {name}" for name in _GPUS))
    program.chmod(0o755)
    (tmp_path / "bin" / "pynvml.py").write_text("raise ImportError('not installed')\n")
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{program.parent}{os.pathsep}{os.environ['PYTHONPATH']}")
    monkeypatch.syspath_prepend(str(program.parent))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def _line(folder: Path, count: int = 1) -> Waiter:
    return Waiter(folder, ["a", "b"], count, "GPU")


def _release(held: dict[str, int] | None) -> None:
    for fd in (held or {}).values():
        os.close(fd)


def test_leases_are_granted_in_order(tmp_path: Path) -> None:
    first, second, third, fourth = (_line(tmp_path) for _ in range(4))
    held = [first.try_take(), second.try_take()]
    assert [sorted(names or {}) for names in held] == [["a"], ["b"]]
    assert third.try_take() is None
    assert fourth.try_take() is None
    _release(held[1])
    assert fourth.try_take() is None
    taken = third.try_take()
    assert sorted(taken or {}) == ["b"]
    _release(held[0])
    last = fourth.try_take()
    assert sorted(last or {}) == ["a"]
    _release(taken)
    _release(last)
    assert leases.taken(tmp_path) == []
    assert not list(tmp_path.glob("ticket-*"))


def test_several_leases_are_granted_together_or_not_at_all(tmp_path: Path) -> None:
    one, both = _line(tmp_path), _line(tmp_path, 2)
    held = one.try_take()
    assert both.try_take() is None
    assert leases.taken(tmp_path) == ["a"]
    _release(held)
    pair = both.try_take()
    assert sorted(pair or {}) == ["a", "b"]
    _release(pair)


def test_a_dead_waiter_leaves_the_queue(tmp_path: Path) -> None:
    held = _line(tmp_path, 2).try_take()
    code = (
        "import sys, pathlib, time; from layerwise._tool.backends.jobs.workspace.leases import Waiter\n"
        "own = Waiter(pathlib.Path(sys.argv[1]), ['a', 'b'], 1, 'GPU'); assert own.try_take() is None; time.sleep(600)"
    )
    waiter = start_script(code, str(tmp_path))
    until(lambda: list(tmp_path.glob("ticket-*")))
    mine = _line(tmp_path)
    assert mine.try_take() is None
    _release(held)
    assert mine.try_take() is None
    waiter.kill()
    waiter.wait()
    taken = mine.try_take()
    assert taken is not None
    _release(taken)


def test_many_processes_never_share_a_lease(tmp_path: Path) -> None:
    """Eight processes acquire and release two leases, marking each while they hold it."""
    code = """
import os, pathlib, sys, time
from layerwise._tool.backends.jobs.workspace.leases import Waiter
folder = pathlib.Path(sys.argv[1])
for _ in range(15):
    line = Waiter(folder / 'locks', ['a', 'b'], 1, 'GPU')
    while (held := line.try_take()) is None:
        time.sleep(0.001)
    [(name, fd)] = held.items()
    os.close(os.open(folder / f'mark-{name}', os.O_CREAT | os.O_EXCL))
    time.sleep(0.001)
    os.unlink(folder / f'mark-{name}')
    os.close(fd)
"""
    scripts = [start_script(code, str(tmp_path)) for _ in range(8)]
    assert [script.wait(60) for script in scripts] == [0] * 8
    assert leases.taken(tmp_path / "locks") == []


@pytest.mark.usefixtures("two_gpus")
def test_each_job_sees_its_own_gpu(jobs_home: Workspace) -> None:
    jobs = [submit(jobs_home, "hang", gpus=1) for _ in range(2)]
    seen = [wait_for(jobs_home, job, "running").gpus for job in jobs]
    assert sorted(seen) == [[name] for name in _GPUS]
    assert leases_taken(jobs_home) == _GPUS
    waiting = submit(jobs_home, "environment", {"names": ["CUDA_VISIBLE_DEVICES"]}, gpus=1)
    until(lambda: "waiting for 1 GPU" in jobs_home.view(waiting).reason)
    kill(pids_of(jobs_home, jobs[1])[1])
    view = wait_for(jobs_home, waiting, "done")
    assert (view.result or {})["CUDA_VISIBLE_DEVICES"] == seen[1][0]
    asyncio.run(JobClient(jobs_home).cancel(jobs[0]))


@pytest.mark.usefixtures("two_gpus")
def test_a_job_in_prestarted_processes_sees_its_own_gpu(jobs_home: Workspace) -> None:
    first = submit(jobs_home, "hang", gpus=1)
    [taken] = wait_for(jobs_home, first, "running").gpus
    job = submit_warm(jobs_home, "environment", {"names": ["CUDA_VISIBLE_DEVICES"]}, gpus=1)
    view = wait_for(jobs_home, job, "done")
    assert [(view.result or {})["CUDA_VISIBLE_DEVICES"]] == [name for name in _GPUS if name != taken]
    asyncio.run(JobClient(jobs_home).cancel(first))


@pytest.mark.usefixtures("two_gpus")
def test_worker_and_supervisor_both_hold_the_lease(jobs_home: Workspace) -> None:
    """So that it ends when both are dead, and not before."""
    job = submit(jobs_home, "hang", gpus=2)
    row_of(jobs_home, job, "layers")
    for pid in pids_of(jobs_home, job):
        held = [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()]
        assert [name for name in _GPUS if any(f"{name}.lock" in path for path in held)] == _GPUS
    kill(pids_of(jobs_home, job)[0])
    wait_for(jobs_home, job, "failed")
    until(lambda: leases_taken(jobs_home) == [])


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(("wanted", "found"), [(None, "GPU-aaaa-1"), ("1", "GPU-bbbb-2")])
def test_a_job_without_gpus_may_run_jobs_that_have_some(
    jobs_home: Workspace, monkeypatch: pytest.MonkeyPatch, wanted: str | None, found: str
) -> None:
    if wanted is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", wanted)
    view = run(jobs_home, "outer", cpus=0)
    assert view.result == {"inside": found, "here": ""}


@pytest.mark.usefixtures("two_gpus")
def test_requesting_more_gpus_than_exist_is_an_error(jobs_home: Workspace) -> None:
    card = run(jobs_home, "rows", gpus=3).card or {}
    assert card["kind"] == "error"
    assert "asks for 3 GPU(s) and this machine shows 2" in card["summary"]


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("wanted", "found"),
    [("1", [_GPUS[1]]), ("GPU-bbbb", [_GPUS[1]]), ("1,0", _GPUS[::-1]), ("0,-1,1", [_GPUS[0]]), ("", []), ("7", [])],
)
def test_cuda_visible_devices_limits_the_gpus(wanted: str, found: list[str]) -> None:
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": wanted}) == found
    assert visible_gpus({}) == _GPUS


def test_lease_files_of_another_user_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(tmp_path, 12345, 12345)
    monkeypatch.setenv("LAYERWISE_LEASES", str(tmp_path))
    with pytest.raises(LayerwiseError, match="belongs to another user"):
        leases.leases_root()
