"""Another user of the machine: he can read, plant, signal and connect to nothing of ours."""

import asyncio
import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import onnx
import psutil
import pytest
from support.bench import chain_pair
from support.cli import fresh_layerwise, layerwise
from support.jobs import jobs_home, processes_of, ready_pair, submit, until, wait_for
from support.models import mlp
from support.other_user import OTHER, as_other, entries, loose, needs_root, open_place, reached, signalled

from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.tui.state.session import SessionStore

__all__ = ["jobs_home", "open_place"]

COMMANDS = (
    "run m.onnx --onnxrt --onnxrt --mark-all --save-inputs in.json --save-outputs out.json",
    "run m.onnx --onnxrt --save-outputs res --save-inputs feeds --save-onnx made/new/saved.onnx",
    "run wrong.onnx --onnxrt --reference-model chain.onnx --mark-all",
    "debug locate wrong.onnx --reference-model chain.onnx --onnxrt",
    "debug reduce wrong.onnx --reference-model chain.onnx --onnxrt -o small.onnx",
    "debug bundle -o bug",
    "debug reduce m.onnx -o smaller.onnx --check false",
    "surgeon edit m.onnx --delete /fc0/Relu --save-edits edits.json --script edits.py -o cut.onnx",
    "surgeon sanitize m.onnx --fold-constants -o clean.onnx",
    "convert m.onnx --fp-to-fp16 -o half.onnx",
    "inspect model m.onnx --visual -o page.html",
    "check lint m.onnx",
    "bench m.onnx --onnxrt --iterations 2 --warm-up 0",
    "triage wrong.onnx --onnxrt --reference-model chain.onnx -o triage",
)
UMASK = 0o002
ASKED = (
    "in.json", "out.json", "res", "feeds", "made", "made/new", "made/new/saved.onnx", "small.onnx", "bug",
    "bug/repro.py", "bug/model.onnx", "bug/inputs.npz", "edits.json", "edits.py", "cut.onnx", "clean.onnx", "half.onnx",
    "page.html", "triage",
)  # fmt: skip


@pytest.fixture
def folder(open_place: Path) -> Path:
    made = open_place / "models"
    made.mkdir()
    onnx.save(mlp(), made / "m.onnx")
    chain_pair(made)
    return made


@pytest.fixture
def used(open_place: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace where others could reach it, after many commands, and what the app keeps."""
    root = open_place / "home"
    monkeypatch.setenv("LAYERWISE_HOME", str(root))
    monkeypatch.setenv("LAYERWISE_LEASES", str(root / "leases"))
    before = os.umask(UMASK)
    try:
        for line in COMMANDS:
            done = layerwise(*line.split(), cwd=folder)
            assert done.returncode in (0, 1), (line, done.stdout, done.stderr)
        home = Workspace(root)
        home.list_jobs()
        store = SessionStore(root)
        session = store.load(folder / "m.onnx")
        store.save(session)
        yield home
    finally:
        os.umask(before)


@needs_root
def test_another_user_reaches_nothing(used: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _check_what_was_asked_for(folder)
    assert loose(used.root) == []
    monkeypatch.setenv("LAYERWISE_EXTRA_ACTIONS", "test_hang=support.jobactions:hang")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((os.environ["PYTHONPATH"], f"{Path(__file__).parents[1]}")))
    asyncio.run(_look(used))


async def _look(home: Workspace) -> None:
    client = JobClient(home)
    await ready_pair(home, client)
    job = await asyncio.to_thread(submit, home, "hang")
    await asyncio.to_thread(wait_for, home, job, "running")
    paths = entries(home.root)
    pids = [int(line.split()[0]) for line in processes_of(home)]
    assert len(paths) > 150 and len(pids) >= 4
    assert loose(home.root) == []
    names = _sockets(pids)
    read_end, write_end = os.pipe()

    def attack() -> int:
        found = [*reached(paths[1:]), *reached([home.root])[1:], *map(str, signalled(pids)), *_connected(names)]
        os.write(write_end, "\n".join(found).encode()[:60_000])
        return 0

    before = {path: path.lstat().st_mode for path in paths}
    assert await asyncio.to_thread(as_other, attack) == 0
    os.close(write_end)
    assert os.read(read_end, 60_000).decode() == ""
    os.close(read_end)
    assert {path: path.lstat().st_mode for path in paths} == before
    assert all(psutil.pid_exists(pid) for pid in pids)
    await client.cancel(job)
    assert (await client.wait(job)).state == "cancelled"
    client.close()
    await asyncio.to_thread(until, lambda: not processes_of(home))


def _sockets(pids: list[int]) -> list[str]:
    """Names of the sockets that processes listen at, those outside of the file system too."""
    found = []
    for pid in pids:
        nodes = {str(Path(entry.path).readlink()) for entry in os.scandir(f"/proc/{pid}/fd")}
        for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
            words = line.split(maxsplit=7)
            if f"socket:[{words[6]}]" in nodes and len(words) == 8:
                found.append(words[7].replace("@", "\0", 1))
    return found


def _connected(names: list[str]) -> list[str]:
    found = []
    for name in names:
        with socket.socket(socket.AF_UNIX) as asked:
            if asked.connect_ex(name) == 0:
                found.append(f"connect to {name}")
    return found


def _check_what_was_asked_for(folder: Path) -> None:
    """It has the user's mode, all that lies in folders too, and nothing is left beside it."""
    for name in ASKED:
        assert (folder / name).exists(), name
    assert len(entries(folder / "triage")) > 1
    for path in entries(folder)[1:]:
        usual = 0o777 if path.is_dir() else 0o666
        wanted = 0o644 if path.name in {"m.onnx", "chain.onnx", "wrong.onnx"} else usual & ~UMASK
        assert stat.S_IMODE(path.lstat().st_mode) == wanted, path
        assert not path.name.startswith("."), path


@pytest.mark.parametrize("umask", [0o777, 0o277])
def test_a_umask_that_bars_the_user_himself(folder: Path, umask: int) -> None:
    root = Path(os.environ["LAYERWISE_HOME"])
    words = ["run", "m.onnx", "--onnxrt", "--onnxrt", "--save-outputs", "out.json"]
    done = fresh_layerwise(*words, cwd=folder, umask=umask)
    assert done.returncode == 0, done.stderr
    assert {stat.filemode(path.lstat().st_mode) for path in entries(root)} == {"drwx------", "-rw-------"}
    assert stat.S_IMODE((folder / "out.json").stat().st_mode) == 0o666 & ~umask


@needs_root
def test_the_command_says_why_it_refuses_a_workspace(folder: Path) -> None:
    root = Path(os.environ["LAYERWISE_HOME"])
    os.chown(root, OTHER, OTHER)
    for line in ("run m.onnx --onnxrt --onnxrt", "jobs", "attach", "jobs retry 1", "jobs prune"):
        done = layerwise(*line.split(), cwd=folder)
        assert done.returncode in (1, 2)
        (said,) = done.stderr.splitlines()
        assert said.endswith("belongs to another user: set LAYERWISE_HOME to a folder of yours")
    assert list(root.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
