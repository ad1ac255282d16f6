"""Rows against the serial run, bytes a cell, cancelling, and the speed of waiting cells."""

import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import psutil
from msgspec.structs import replace
from support.matrices.cluster import Cluster, Proxy
from support.matrices.sample import waiting, write_sample

from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools.matrix.rows import MatrixResult


def command(folder: Path, home: Path, *words: str) -> MatrixResult:
    """Run `layerwise matrix` in a workspace; its result file."""
    target = folder / f"{home.name}.json"
    line = [sys.executable, "-m", "layerwise", "matrix", *words, "-o", str(target)]
    done = subprocess.run(
        line, env={**os.environ, "LAYERWISE_HOME": str(home)}, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return msgspec.json.decode(target.read_bytes(), type=MatrixResult)


def equal(folder: Path, models: int = 12) -> dict[str, Any]:
    """A matrix on a cluster of four workers against the serial run; then once more, which runs nothing."""
    path = write_sample(folder / "models", models)
    began = time.monotonic()
    serial = command(folder, folder / "serial", str(path), "--workers", "1")
    between = time.monotonic()
    proxy = Proxy()
    cluster = Cluster(4, folder / "cluster.log", through=proxy.port)
    proxy.to = cluster.port
    try:
        idle = _idle(proxy, 10.0)
        start, there = time.monotonic(), proxy.bytes
        spread = command(folder, folder / "spread", str(path), "--cluster", cluster.address)
        took, sent = time.monotonic() - start, proxy.bytes - there
        again = command(folder, folder / "spread", str(path), "--cluster", cluster.address)
    finally:
        cluster.close()
        proxy.close()
    one = {
        row.id: (row.receipt.verdict, row.receipt.digest, row.receipt.suspect, row.receipt.key) for row in serial.cells
    }
    other = {
        row.id: (row.receipt.verdict, row.receipt.digest, row.receipt.suspect, row.receipt.key) for row in spread.cells
    }
    cells = len(one)
    return {"cells": cells, "equal": one == other, "different": [key for key in one if one[key] != other.get(key)],
            "verdicts": spread.counts, "digests": len({row.receipt.digest for row in serial.cells}),
            "serial s": round(between - began, 1), "cluster s": round(took, 1),
            "bytes a cell": round(sent / cells),
            "bytes a cell without the idle cluster's": round((sent - idle * took) / cells),
            "idle bytes a second": round(idle), "run again": again.run, "reused": again.reused}  # fmt: skip


def _idle(proxy: Proxy, seconds: float) -> float:
    """Bytes a second of a cluster that does nothing, once its workers are there."""
    time.sleep(8.0)
    before = proxy.bytes
    time.sleep(seconds)
    return (proxy.bytes - before) / seconds


def speed(folder: Path, cells: int = 40, seconds: float = 5.0, workers: int = 4) -> dict[str, Any]:
    """Waiting cells one after the other, in threads, and on worker processes: how near to `workers` times as fast."""
    found: dict[str, Any] = {"cells": cells, "each s": seconds, "workers": workers}
    each = _run(folder, "one", max(4, cells // 10), seconds, 1, "") / max(4, cells // 10)
    ideal = each * cells / workers
    found |= {"a cell alone s": round(each, 2), "ideal s": round(ideal, 1)}
    for name, where in (("threads", ""), ("dask", f"local:{workers}")):
        took = _run(folder, name, cells, seconds, workers, where)
        found[name] = {"s": round(took, 1), "over ideal": f"{100 * (took / ideal - 1):.1f} %"}
    return found


def _run(folder: Path, name: str, cells: int, seconds: float, workers: int, where: str) -> float:
    """Seconds from the first job's start to the last one's end: a cluster's own start is not counted."""
    home = folder / name
    spec = replace(waiting(cells, seconds, cluster=where), workers=workers)
    path = folder / f"{name}.json"
    path.write_bytes(msgspec.json.encode(spec))
    line = [sys.executable, "-m", "support.matrices.client", str(path)]
    subprocess.run(line, env={**os.environ, "LAYERWISE_HOME": str(home)}, check=True)
    workspace = Workspace(home)
    views = [view for view in map(workspace.view, workspace.ids()) if view.spec.action != "matrix"]
    return max(view.ended or 0.0 for view in views) - min(view.created for view in views)


def cancel(folder: Path, where: str = "local:4", running: int = 4, within: float = 30.0) -> dict[str, Any]:
    """Interrupt a matrix whose cells hang; how soon it has ended, and what is left of it `within` so many seconds."""
    home = folder / "cancelled"
    spec = waiting(8, 600.0, cluster=where)
    path = folder / "cancel.json"
    path.write_bytes(msgspec.json.encode(spec))
    line = [sys.executable, "-m", "support.matrices.client", str(path)]
    process = subprocess.Popen(line, env={**os.environ, "LAYERWISE_HOME": str(home)})
    workspace = Workspace(home)
    while sum(view.state == "running" for view in map(workspace.view, workspace.ids())) <= running:
        assert process.poll() is None, "the matrix has ended by itself"
        time.sleep(0.1)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(60)
    took = time.monotonic() - start
    while (left := _of(home)) and time.monotonic() < start + within:  # dask's workers end when they miss the command
        time.sleep(0.1)
    gone = time.monotonic() - start
    states = [workspace.view(job).state for job in workspace.ids()]
    return {
        "ended after s": round(took, 2),
        "all of its processes after s": round(gone, 2),
        "processes left": len(left),
        "states": {one: states.count(one) for one in states},
    }


def _of(home: Path) -> list[int]:
    """Processes that work in a workspace."""
    return [one.pid for one in psutil.process_iter(["environ"]) if str(home) in str(one.info["environ"] or "")]


_SMI = "#!/bin/sh\necho GPU-one\necho GPU-two\n"


def gpus(folder: Path, cells: int = 12, workers: int = 4) -> dict[str, Any]:
    """Cells that each lease a GPU, and as many that do not, on four workers; two made-up GPUs where there is none."""
    home, path = folder / "gpus", os.environ["PATH"]
    if shutil.which("nvidia-smi") is None:
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin" / "nvidia-smi").write_text(_SMI)
        (folder / "bin" / "nvidia-smi").chmod(0o755)
        path = f"{folder / 'bin'}{os.pathsep}{path}"
    plain = waiting(2 * cells, 2.0, cluster=f"local:{workers}")
    asking = list(plain.cells)
    for i in range(1, 2 * cells, 2):
        asking[i] = replace(asking[i], gpu=True, job=replace(asking[i].job, gpus=1))
    file = folder / "gpus.json"
    file.write_bytes(msgspec.json.encode(replace(plain, cells=asking)))
    line = [sys.executable, "-m", "support.matrices.client", str(file)]
    subprocess.run(line, env={**os.environ, "LAYERWISE_HOME": str(home), "PATH": path}, check=True)
    workspace = Workspace(home)
    views = [view for view in map(workspace.view, workspace.ids()) if view.spec.action != "matrix"]
    held = [(view.gpus, view.started or 0.0, view.ended or 0.0) for view in views if view.spec.gpus]
    pairs = [(one, two) for one, two in combinations(held, 2) if one[1] < two[2] and two[1] < one[2]]
    twice = sum(bool(set(one[0]) & set(two[0])) for one, two in pairs)
    at_once = max(sum(start <= other[1] < end for other in held) for _, start, end in held)
    return {"GPUs": sorted({name for names, *_ in held for name in names}), "cells with one": len(held),
            "cells without": len(views) - len(held), "two on one GPU": twice, "at once, at most": at_once}  # fmt: skip


def skew(folder: Path) -> dict[str, Any]:
    """A worker whose layerwise is of another version: what the command says."""
    shim = folder / "shim"
    shim.mkdir(parents=True, exist_ok=True)
    (shim / "sitecustomize.py").write_text("import layerwise._tool\nlayerwise._tool.VERSION = '9.9.9'\n")
    path = write_sample(folder / "models", 1)
    env = {"PYTHONPATH": os.pathsep.join([str(shim), os.environ.get("PYTHONPATH", "")])}
    cluster = Cluster(1, folder / "cluster.log", env)
    try:
        line = [sys.executable, "-m", "layerwise", "matrix", str(path), "--cluster", cluster.address]
        done = subprocess.run(
            line,
            env={**os.environ, "LAYERWISE_HOME": str(folder / "skew")},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        cluster.close()
    return {"exit": done.returncode, "said": (done.stdout + done.stderr).strip().splitlines()[-2:]}
