"""Cells that compute on GPUs, a search of another login beside them, and kills: who is on which GPU, seen from outside.

Made-up GPUs where the machine has none: a `nvidia-smi` that names two, and whose processes may use which.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import onnx
import psutil
from support.matrices.sample import layers

from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.workspace.gpus import visible_gpus
from layerwise._tool.backends.jobs.workspace.store import Workspace

_LAYERWISE = [sys.executable, "-m", "layerwise"]
_SMI = f"""#!{sys.executable}
import os, sys
names = ("GPU-one", "GPU-two")
if "--query-gpu" in sys.argv[1]:
    print("\\n".join(names))
for pid in filter(str.isdigit, os.listdir("/proc")) if "--query-compute-apps" in sys.argv[1] else ():
    try:
        words = open(f"/proc/{{pid}}/environ").read().split("\\0")
    except OSError:
        continue
    for name in names:
        if f"CUDA_VISIBLE_DEVICES={{name}}" in words:
            print(name, pid, sep=", ")
"""


class _Seen(NamedTuple):
    """One look: the groups of living processes on each GPU; the process that took the lock of each GPU's lease."""

    on: dict[str, frozenset[int]]
    holders: dict[str, int]


class Sampler(threading.Thread):
    """Asks the driver and the kernel, some times a second, which processes are on which GPU and who holds its lease."""

    def __init__(self, gpus: Sequence[str], leases: Path) -> None:
        super().__init__(daemon=True)
        self.seen: list[_Seen] = []
        self._gpus, self._leases, self._over = gpus, leases, threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.05):
            self.seen.append(self.look())

    def look(self) -> _Seen:
        holders = self.holders()
        on = self._on()
        return _Seen({gpu: _groups(on.get(gpu, ())) for gpu in self._gpus}, holders)

    def holders(self) -> dict[str, int]:
        """By GPU, from /proc/locks; 0 for one that nobody holds."""
        lines = map(str.split, Path("/proc/locks").read_text().splitlines())
        locks = {int(words[5].rpartition(":")[2]): int(words[4]) for words in lines if words[1] == "FLOCK"}
        files = {gpu: self._leases / "gpu" / f"{gpu}.lock" for gpu in self._gpus}
        return {gpu: locks.get(file.stat().st_ino, 0) if file.exists() else 0 for gpu, file in files.items()}

    def _on(self) -> dict[str, list[int]]:
        words = ["nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader"]
        found: dict[str, list[int]] = {}
        for line in subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines():
            gpu, _, pid = line.partition(",")
            if pid.strip().isdigit():
                found.setdefault(gpu.strip(), []).append(int(pid))
        return found

    def close(self) -> None:
        self._over.set()
        self.join()


def _groups(pids: Sequence[int]) -> frozenset[int]:
    """The process groups of those that live: what a cell starts is on its GPU with it."""
    found = set()
    for pid in filter(_lives, pids):
        with suppress(ProcessLookupError):
            found.add(os.getpgid(pid))
    return frozenset(found)


def _lives(pid: int) -> bool:
    with suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def shared(folder: Path, kills: int = 6, workers: int = 4, models: int = 4) -> dict[str, Any]:
    """Four cells a model on GPUs and two beside them on a cluster of this machine, a search and kills; figures."""
    real = bool(visible_gpus(os.environ))
    if not real:
        _make_up(folder / "bin")
    gpus, leases = visible_gpus(os.environ) or [], folder / "leases"
    side = _gpu_words(real, folder / "models" / "modules.py")
    os.environ["LAYERWISE_LEASES"] = str(leases)
    matrix, search = _write(folder / "models", side, real, models)
    sampler = Sampler(gpus, leases)
    sampler.start()
    began = time.monotonic()
    try:
        command = _started(
            ["matrix", str(matrix), "--cluster", f"local:{workers}"], folder / "home", folder / "matrix.txt"
        )
        while not any(sampler.holders().values()) and command.poll() is None:
            time.sleep(0.1)
        beside = _started(search, folder / "other", folder / "search.txt", login=True)
        killed = _kill(kills, command, Workspace(folder / "home"), sampler)
        codes = {"matrix": command.wait(), "search": beside.wait()}
        took = time.monotonic() - began
        again = subprocess.run(
            [*_LAYERWISE, "matrix", str(matrix)], env={**os.environ, "LAYERWISE_HOME": str(folder / "home")},
            capture_output=True, text=True, check=False,
        ).stdout.strip().splitlines()[-1:]  # fmt: skip
        last = sampler.look()
    finally:
        sampler.close()
    held = {name: _held(Workspace(folder / home)) for name, home in (("matrix", "home"), ("search", "other"))}
    return {
        "GPUs": [*gpus], "real": real, "side": " ".join(side), "exit": codes, "seconds": round(took, 1),
        **_by_driver(sampler.seen, gpus), **_by_journals(held), "killed": len(killed), "kills": killed,
        "GPUs not given back at the end": [gpu for gpu in gpus if last.holders[gpu] or last.on[gpu]],
        "run again": again, "matrix said": (folder / "matrix.txt").read_text().splitlines()[-3:],
        "search said": (folder / "search.txt").read_text().splitlines()[-2:],
    }  # fmt: skip


def _make_up(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nvidia-smi").write_text(_SMI)
    (folder / "nvidia-smi").chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


_MODULES = """import onnx
import torch
from onnx import numpy_helper
from pathlib import Path


class Net(torch.nn.Module):
    def __init__(self, path):
        super().__init__()
        weights = onnx.load(path).graph.initializer
        self.weights = torch.nn.ParameterList(torch.tensor(numpy_helper.to_array(weight)) for weight in weights)

    def forward(self, x):
        for weight in self.weights:
            x = torch.tanh(x @ weight)
        return x


def net(name):
    path = Path(__file__).with_name(name + ".onnx")
    size = onnx.load(path).graph.input[0].type.tensor_type.shape.dim[1].dim_value
    return Net(path).eval(), (torch.zeros(2, size),)
"""


def _gpu_words(real: bool, modules: Path) -> list[str]:
    """A runner that computes `{name}` on the GPU: onnxruntime, or torch where it cannot; one that only leases it."""
    if not real:
        return ["--onnxrt", "--gpus", "1"]
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        return ["--runner", "onnxrt,providers=cuda,tf32=false"]
    return ["--torch", f"{modules}:{{name}}", "--torch-device", "cuda"]


def _write(folder: Path, words: list[str], real: bool, models: int) -> tuple[Path, list[str]]:
    """The matrix's file, and the words of a search whose checks lease GPUs."""
    folder.mkdir(parents=True, exist_ok=True)
    size = 1024 if real else 64
    makers = [f"def net{seed}():\n    return net('net{seed}')\n" for seed in range(models)]
    (folder / "modules.py").write_text("\n\n".join([_MODULES, *makers]))
    for seed in range(models):
        onnx.save(layers(seed, size=size), folder / f"net{seed}.onnx")
    quoted = ", ".join(f'"{word}"' for word in words)
    path = folder / "gpus.toml"
    path.write_text("\n".join([
        'models = ["net?.onnx"]', 'on-failure = ["locate"]', 'reference = ["--runner", "onnxrt,providers=cpu"]',
        "[sides]", f'gpu = {{ words = [{quoted}] }}', 'cpu = { words = ["--onnxrt"], actions = ["run"] }',
        "[feeds]", "one = { seed = 1 }", "two = { seed = 2 }",
        "[actions]", 'run = ["--mark-all", "--iterations", "20"]', 'locate = []',
    ]))  # fmt: skip
    words = [word.replace("{name}", "net0") for word in words]
    check = [*_LAYERWISE, "run", str(folder / "net0.onnx"), *words, "--runner", "onnxrt,providers=cpu"]
    return path, ["debug", "repeat", "--until", str(2 * models), "--jobs", "2", "--check", *check]


def _started(words: list[str], home: Path, said: Path, *, login: bool = False) -> "subprocess.Popen[bytes]":
    """login: with nothing of this process's environment but what a login of the same user has, and the paths."""
    kept = ("PATH", "HOME", "PYTHONPATH", "LD_LIBRARY_PATH", "LAYERWISE_LEASES")
    env = {name: os.environ[name] for name in kept if name in os.environ} if login else dict(os.environ)
    with said.open("wb") as file:
        return subprocess.Popen([*_LAYERWISE, *words], env={**env, "LAYERWISE_HOME": str(home)}, stdout=file,
                                stderr=file, stdin=subprocess.DEVNULL, start_new_session=True)  # fmt: skip


def _kill(count: int, command: "subprocess.Popen[bytes]", jobs: Workspace, sampler: Sampler) -> list[dict[str, Any]]:
    """Kill, by turns, the process of a cell that holds a GPU and the worker above it; how soon the GPU is free."""
    rng, found = random.Random(0), list[dict[str, Any]]()
    while len(found) < count and command.poll() is None:
        time.sleep(0.5)
        views = [view for view in map(jobs.view, jobs.ids()) if view.state == "running" and view.gpus]
        if not (views := [view for view in views if _lives(view.pid)]):
            continue
        view = rng.choice(views)
        gpu, holder = view.gpus[0], sampler.holders()[view.gpus[0]]
        what = "worker" if len(found) % 2 else "cell"
        victim = (_worker(view.pid) if what == "worker" else view.pid) if holder else 0
        if not victim:
            continue
        os.kill(victim, signal.SIGKILL)
        start = time.monotonic()
        while (sampler.holders()[gpu] == holder or _lives(view.pid)) and time.monotonic() < start + 30:
            time.sleep(0.01)
        given = time.monotonic() - start
        found.append({"what": what, "job": view.id, "attempt": view.attempt, "GPU": gpu, "pid": view.pid,
                      "at": round(time.time() - given, 2), "given back after s": round(given, 2)})  # fmt: skip
        time.sleep(rng.uniform(1.0, 3.0))
    return found


def _worker(pid: int) -> int:
    """The dask worker that a cell's process runs under, 0 if it is gone."""
    try:
        above = [one.pid for one in psutil.Process(pid).parents() if "spawn_main" in " ".join(one.cmdline())]
    except psutil.Error:
        return 0
    return above[0] if above else 0


def _by_driver(seen: list[_Seen], gpus: Sequence[str]) -> dict[str, Any]:
    """A cell counts where two looks one after the other saw it: a process that ends leaves the driver later."""
    steady = [{gpu: one.on[gpu] & other.on[gpu] for gpu in gpus} for one, other in pairwise(seen)]
    ever = {gpu: frozenset[int]().union(*(look[gpu] for look in steady)) for gpu in gpus}
    return {
        "looks": len(seen),
        "looks with a cell on": {gpu: sum(bool(look[gpu]) for look in steady) for gpu in gpus},
        "looks with a cell on each": sum(all(look.values()) for look in steady),
        "looks with two cells on one": sum(any(len(groups) > 1 for groups in look.values()) for look in steady),
        "cells on GPUs at once, at most": max((sum(map(len, look.values())) for look in steady), default=0),
        "cells seen on": {gpu: len(groups) for gpu, groups in ever.items()},
        "cells seen on both": len(frozenset.intersection(*ever.values())),
        "processes that held a lease": {gpu: len({one.holders[gpu] for one in seen} - {0}) for gpu in gpus},
    }  # fmt: skip


class _Hold(NamedTuple):
    """A GPU held by one attempt of a job, as its journal tells it."""

    gpu: str
    start: float
    end: float


def _held(workspace: Workspace) -> list[_Hold]:
    found: list[_Hold] = []
    for job in workspace.ids():
        now: dict[int, _Hold] = {}
        for event in read_events(workspace.view(job).folder):
            attempt = int(event.get("attempt", max(now, default=0)))
            running = event["type"] == "state" and event.get("state") == "running"
            for gpu in event.get("gpus", ()) if running else ():
                now[attempt] = _Hold(gpu, event["t"], event["t"])
            if event["type"] not in {"state", "card"} and attempt in now:  # those come when the GPU is given back
                now[attempt] = now[attempt]._replace(end=event["t"])
        found += now.values()
    return found


def _by_journals(held: dict[str, list[_Hold]]) -> dict[str, Any]:
    """Of all attempts of both workspaces, from the event that it runs to its last one."""
    every = sorted((hold for holds in held.values() for hold in holds), key=lambda hold: hold.start)
    pairs = [(one, two) for i, one in enumerate(every) for two in every[i + 1 :] if two.start < one.end]
    both = [(one, two) for one in held["matrix"] for two in held["search"]]
    return {
        "attempts with a GPU": {name: len(holds) for name, holds in held.items()},
        "two attempts on one GPU": sum(one.gpu == two.gpu for one, two in pairs),
        "attempts at once, at most": max((sum(o.start <= h.start < o.end for o in every) for h in every), default=0),
        "cells of both at once": sum(one.start < two.end and two.start < one.end for one, two in both),
    }  # fmt: skip
